package capture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/capture/pcapng"
)

// liveBuffer is the size of the kernel's receive buffer in bytes. It holds about ten milliseconds of traffic from a 10
// Gbit/s link.
const liveBuffer = 16 << 20

// liveReader captures packets from an interface. pcapgo's EthernetHandle is not used: its Close does not wake a reader,
// it truncates packets at the interface's MTU, and on a loopback interface it sees every packet twice.
type liveReader struct {
	file         *os.File
	conn         syscall.RawConn
	ctx          context.Context
	stop         func() bool
	link         pcapng.LinkType
	skipOutgoing bool // on a loopback interface, which also receives each packet
	// buf receives a packet, and oob its control message, which contains the kernel's time stamp.
	buf   []byte
	oob   []byte
	drops atomic.Int64
	// closed is set by Close. It is needed because a closed RawConn returns an error that only the standard library can
	// recognize.
	closed atomic.Bool
}

// OpenLive captures packets from a network interface. It requires the capability CAP_NET_RAW; without it, the error
// wraps fs.ErrPermission and names the capability. Only Linux has packet sockets; on other systems the error wraps
// errors.ErrUnsupported.
//
// The capture continues until ctx is done; then Next returns io.EOF. Close also ends the capture, and may be called
// concurrently with Next.
//
// If the kernel coalesces datagrams or segments, as it does on a loopback interface, a unit holds several of them.
func (o Options) OpenLive(ctx context.Context, name string) (Source, error) {
	fail := func(err error) (Source, error) {
		return nil, fmt.Errorf("record from interface %s: %w", name, err)
	}
	iface, err := net.InterfaceByName(name)
	if err != nil {
		return fail(err)
	}
	reader, err := o.newLiveReader(iface)
	if errors.Is(err, fs.ErrPermission) {
		return fail(fmt.Errorf("%w: the capability CAP_NET_RAW is needed; run as root, or once: setcap "+
			"cap_net_raw+ep <program>", err))
	}
	if err != nil {
		return fail(err)
	}
	reader.ctx = ctx
	// A deadline in the past ends the pending read and all later ones.
	reader.stop = context.AfterFunc(ctx, func() {
		reader.file.SetReadDeadline(time.Unix(1, 0)) //nolint:errcheck // closed already
	})
	return &source{name: name, decoder: newDecoder(o), records: reader, closer: reader, kernelDrops: reader.dropped}, nil
}

// newLiveReader opens a packet socket on an interface. Without Ethernet addresses, as on a tunnel device, the packets
// begin with the IP header.
func (o Options) newLiveReader(iface *net.Interface) (*liveReader, error) {
	loopback := iface.Flags&net.FlagLoopback != 0
	reader := &liveReader{
		skipOutgoing: loopback, link: pcapng.LinkRaw,
		buf: make([]byte, pcapng.MaxPacket),
		oob: make([]byte, unix.CmsgSpace(int(unsafe.Sizeof(unix.Timespec{})))),
	}
	kind := unix.SOCK_DGRAM // without the link layer
	if loopback || len(iface.HardwareAddr) == 6 {
		kind, reader.link = unix.SOCK_RAW, pcapng.LinkEthernet
	}
	// A socket with protocol 0 receives nothing. No packet must arrive before the filter is set and the socket is
	// bound.
	fd, err := unix.Socket(unix.AF_PACKET, kind|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	reader.file = os.NewFile(uintptr(fd), "packet socket")
	if reader.conn, err = reader.file.SyscallConn(); err == nil {
		err = o.setUp(fd, iface.Index, reader.link == pcapng.LinkEthernet)
	}
	if err != nil {
		reader.file.Close()
		return nil, err
	}
	return reader, nil
}

// setUp attaches the filter to a packet socket and binds it.
func (o Options) setUp(fd, iface int, ethernet bool) error {
	filter, err := o.liveFilter(ethernet)
	if err != nil {
		return fmt.Errorf("packet filter: %w", err)
	}
	if err := setFilter(fd, filter); err != nil {
		return os.NewSyscallError("attach packet filter", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1); err != nil {
		return os.NewSyscallError("ask for time stamps", err)
	}
	// A smaller buffer than requested is not an error, because lost packets are counted.
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, liveBuffer) != nil {
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, liveBuffer) //nolint:errcheck // see above
	}
	all := uint16(unix.ETH_P_ALL)
	addr := unix.SockaddrLinklayer{Protocol: all<<8 | all>>8, Ifindex: iface}
	return os.NewSyscallError("bind", unix.Bind(fd, &addr))
}

func setFilter(fd int, program []bpf.RawInstruction) error {
	f := make([]unix.SockFilter, len(program))
	for i, p := range program {
		f[i] = unix.SockFilter{Code: p.Op, Jt: p.Jt, Jf: p.Jf, K: p.K}
	}
	return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
		&unix.SockFprog{Len: uint16(len(f)), Filter: &f[0]})
}

// Next implements recordReader.
func (l *liveReader) Next(rec *pcapng.Record) error {
	for {
		// Check ctx here, because a read that finds a packet ignores the deadline: a continuous stream of packets would
		// never end.
		if l.ctx.Err() != nil {
			return io.EOF
		}
		var n, oobn int
		var from unix.Sockaddr
		var err error
		waitErr := l.conn.Read(func(fd uintptr) bool {
			n, oobn, _, from, err = unix.Recvmsg(int(fd), l.buf, l.oob, unix.MSG_TRUNC)
			return err != unix.EAGAIN
		})
		switch {
		case waitErr != nil && (l.ctx.Err() != nil || l.closed.Load()):
			return io.EOF
		case waitErr != nil:
			return waitErr
		case err == unix.EINTR:
			continue
		case err != nil:
			return os.NewSyscallError("recvmsg", err)
		}
		if ll, ok := from.(*unix.SockaddrLinklayer); ok && l.skipOutgoing && ll.Pkttype == unix.PACKET_OUTGOING {
			continue
		}
		rec.Time, rec.Link, rec.WireLen = stamp(l.oob[:oobn]), l.link, n
		rec.Data = l.buf[:min(n, len(l.buf))]
		return nil
	}
}

// stamp returns the kernel's timestamp of a packet. Without a timestamp, it returns the current time.
func stamp(oob []byte) time.Time {
	if len(oob) >= unix.CmsgSpace(int(unsafe.Sizeof(unix.Timespec{}))) {
		ts := (*unix.Timespec)(unsafe.Pointer(&oob[unix.CmsgSpace(0)]))
		return time.Unix(ts.Unix()).UTC()
	}
	return time.Now().UTC()
}

// dropped returns the number of packets that the kernel has dropped so far.
func (l *liveReader) dropped() int64 {
	l.conn.Control(func(fd uintptr) { //nolint:errcheck // if closed, the count is unchanged
		// Reading the statistics resets the kernel's counters.
		if s, err := unix.GetsockoptTpacketStats(int(fd), unix.SOL_PACKET, unix.PACKET_STATISTICS); err == nil {
			l.drops.Add(int64(s.Drops))
		}
	})
	return l.drops.Load()
}

// Close ends the capture and unblocks Next.
func (l *liveReader) Close() error {
	l.stop()
	l.closed.Store(true)
	return l.file.Close()
}

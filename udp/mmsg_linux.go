package udp

import (
	"encoding/binary"
	"net"
	"net/netip"
	"runtime"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/internal/anonmem"
	"github.com/zrlmpi/zrlmpid/internal/progress"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// mmsgSocket sends and receives many datagrams per system call, by sendmmsg and recvmmsg, and lets the kernel gather
// the parts of a datagram. Package net has no such calls, and golang.org/x/net allocates memory for every received
// datagram.
type mmsgSocket struct {
	*descriptor
	peers   []sockaddr
	out     mmsgSend
	sendBuf [maxSendOne]byte // buffer of sendOne
	in      mmsgRecv
	direct  directReceive
	// segmentErrnos contains, for each peer, the error number with which the kernel refused to segment pieces, or 0 if
	// it has not refused.
	segmentErrnos []atomic.Uint32
	caps          capabilities
	// local is the socket's own address. mode is the current sendMode, options are the socket options that set it, and
	// defaultMode is the initial value of the option.
	local       sockaddr
	mode        sendMode
	options     modeOptions
	defaultMode int
	route       route
}

// mmsghdr is the kernel's struct mmsghdr.
type mmsghdr struct {
	hdr unix.Msghdr
	len uint32
}

// mmsgSend holds the arguments of a sendmmsg call, so that the call allocates nothing. One message can carry several
// datagrams to a peer, which the kernel segments.
type mmsgSend struct {
	msgs [sendBatch]mmsghdr
	iovs [sendBatch * len(outgoing{}.parts)]unix.Iovec
	// For each message, counts contains its number of datagrams, and controls contains the control message with its
	// segment size.
	counts   [sendBatch]int
	controls [sendBatch]segmentControl
	msgCount int
}

// newSocket returns an mmsgSocket, or a plain socket if the kernel or a sandbox does not support sendmmsg and recvmmsg.
// On success it takes ownership of conn.
func newSocket(conn *net.UDPConn, peers []netip.AddrPort, cfg *Config) (socket, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	if !hasMmsg(raw) {
		return newPlainSocket(conn, peers)
	}
	s := &mmsgSocket{}
	if s.peers, err = newSockaddrs(peers); err != nil {
		return nil, err
	}
	if s.local, err = newSockaddr(conn.LocalAddr().(*net.UDPAddr).AddrPort()); err != nil {
		return nil, err
	}
	s.caps = capabilities{sendBatch: sendBatch, recvBatch: ringLen, canPoll: true}
	s.options = s.local.modeOptions()
	s.defaultMode, s.caps.supportsModes = s.options.hasModes(raw)
	if !cfg.NoOffload {
		s.caps.canSegment, s.caps.canCoalesce = hasSegments(raw), hasCoalescing(raw)
	}
	s.segmentErrnos = make([]atomic.Uint32, len(peers))
	if err := s.makeSlots(s.caps.canCoalesce || cfg.hasLargePeer()); err != nil {
		return nil, err
	}
	fd, err := progress.TakeDescriptor(conn)
	s.descriptor = &descriptor{fd: fd}
	s.route.fd = -1
	if err == nil && cfg.hasLargePeer() {
		s.route = newRoute(s.local, &s.options)
	}
	return s, err
}

// makeSlots gives the socket new slots for received datagrams, long ones or ones of the usual size. Their memory is
// freed after the socket.
func (s *mmsgSocket) makeSlots(long bool) error {
	memory, err := s.in.init(long)
	if err != nil {
		return err
	}
	runtime.AddCleanup(s, anonmem.Put, memory)
	return nil
}

// hasMmsg reports whether the system supports sendmmsg and recvmmsg. It tries both without a datagram.
func hasMmsg(raw syscall.RawConn) bool {
	var none mmsghdr
	ok := true
	err := raw.Control(func(fd uintptr) {
		for _, trap := range []uintptr{unix.SYS_SENDMMSG, unix.SYS_RECVMMSG} {
			_, _, errno := unix.Syscall6(trap, fd, uintptr(unsafe.Pointer(&none)), 0, unix.MSG_DONTWAIT, 0, 0)
			ok = ok && errno != unix.ENOSYS && errno != unix.EPERM
		}
	})
	return err == nil && ok
}

func (s *mmsgSocket) capabilities() capabilities { return s.caps }

// resolve implements socket. The returned function also clears the segmentation errors of peers whose address changes,
// so that the kernel is asked again.
func (s *mmsgSocket) resolve(peers []netip.AddrPort) (func(), error) {
	addrs, err := newSockaddrs(peers)
	if err != nil {
		return nil, err
	}
	return func() {
		for peer := range addrs {
			if addrs[peer] != s.peers[peer] {
				s.peers[peer] = addrs[peer]
				s.segmentErrnos[peer].Store(0)
			}
		}
	}, nil
}

// send implements socket. It makes one system call: consecutive datagrams that the kernel can segment share a message,
// and parts that are adjacent in memory share an iovec. If the kernel refuses to segment, send returns 0 without an
// error, and the next call sends the datagrams separately.
func (s *mmsgSocket) send(out []outgoing, mayWait bool) (int, error) {
	if out[0].mode != s.mode && s.caps.supportsModes {
		if err := s.setMode(out[0].mode); err != nil {
			return 0, err
		}
	}
	if len(out) == 1 {
		if did, err := s.sendOne(&out[0], mayWait); did && err == nil {
			return 1, nil
		} else if did {
			return 0, err
		}
	}
	o := &s.out
	o.msgCount = 0
	iov, bytes := 0, 0
	for i := 0; i < len(out) && i < sendBatch; o.msgCount++ {
		n := s.segmentRun(out[i:min(len(out), sendBatch)])
		hdr := &o.msgs[o.msgCount].hdr
		peer := &s.peers[out[i].peer]
		hdr.Name, hdr.Namelen = &peer.raw[0], peer.len
		hdr.Iov = &o.iovs[iov]
		first := iov
		for j := range out[i : i+n] {
			for _, part := range out[i+j].parts {
				if len(part) == 0 {
					continue
				}
				bytes += len(part)
				if iov > first && isAdjacent(&o.iovs[iov-1], part) {
					o.iovs[iov-1].SetLen(int(o.iovs[iov-1].Len) + len(part))
					continue
				}
				o.iovs[iov].Base = unsafe.SliceData(part)
				o.iovs[iov].SetLen(len(part))
				iov++
			}
		}
		hdr.SetIovlen(iov - first)
		hdr.Control = nil
		hdr.SetControllen(0)
		if n > 1 {
			o.controls[o.msgCount].set(out[i].len())
			hdr.Control = &o.controls[o.msgCount][0]
			hdr.SetControllen(len(o.controls[o.msgCount]))
		}
		o.counts[o.msgCount] = n
		i += n
	}
	done, err := s.sendmmsg(bytes, mayWait)
	// Do not retain the caller's memory.
	clear(o.iovs[:iov])
	runtime.KeepAlive(out)
	if err != nil && o.counts[0] > 1 && s.disableSegments(out[0].peer, err) {
		return 0, nil // the caller tries again
	}
	sent := 0
	for _, n := range o.counts[:done] {
		sent += n
	}
	return sent, err
}

// isAdjacent reports whether part lies directly after last in memory, as consecutive pieces of a message do. Joining
// them saves time in the kernel.
func isAdjacent(last *unix.Iovec, part []byte) bool {
	return uintptr(unsafe.Pointer(last.Base))+uintptr(last.Len) == uintptr(unsafe.Pointer(unsafe.SliceData(part)))
}

// maxSendOne is the maximum length of a datagram for sendOne. Gathering the parts of a longer one in the kernel is
// faster than copying them.
const maxSendOne = protocol.MaxDatagram

// sendOne sends one datagram by sendto, which is faster than sendmmsg. If the datagram is too long, it sends nothing
// and returns false.
func (s *mmsgSocket) sendOne(out *outgoing, mayWait bool) (bool, error) {
	if out.len() > maxSendOne {
		return false, nil
	}
	n := 0
	for _, part := range out.parts {
		n += copy(s.sendBuf[n:], part)
	}
	peer := &s.peers[out.peer]
	s.descriptor.sendMu.Lock()
	defer s.descriptor.sendMu.Unlock()
	for !s.closed.Load() {
		_, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(s.fd), uintptr(unsafe.Pointer(&s.sendBuf[0])), uintptr(n),
			unix.MSG_DONTWAIT,
			uintptr(unsafe.Pointer(&peer.raw[0])), uintptr(peer.len))
		switch {
		case errno == 0:
			return true, nil
		case errno == unix.EINTR:
		case errno == unix.EAGAIN && mayWait:
			if err := s.wait(unix.POLLOUT, -1); err != nil {
				return true, err
			}
		default:
			return true, errno
		}
	}
	return true, net.ErrClosed
}

// rawCallLimit is the maximum number of bytes for which sendmmsg uses a raw system call. The kernel copies this many in
// a few microseconds; during a raw system call, the Go scheduler cannot give this thread's P to another thread.
const rawCallLimit = 1 << 14

// sendmmsg sends the messages in s.out and returns the number of messages sent. bytes is their total length.
func (s *mmsgSocket) sendmmsg(bytes int, mayWait bool) (int, error) {
	s.descriptor.sendMu.Lock()
	defer s.descriptor.sendMu.Unlock()
	call := unix.RawSyscall6
	if bytes > rawCallLimit {
		call = unix.Syscall6
	}
	for !s.closed.Load() {
		n, _, errno := call(unix.SYS_SENDMMSG, uintptr(s.fd), uintptr(unsafe.Pointer(&s.out.msgs[0])),
			uintptr(s.out.msgCount), unix.MSG_DONTWAIT, 0, 0)
		switch {
		case errno == 0:
			return int(n), nil
		case errno == unix.EINTR:
		case errno == unix.EAGAIN && mayWait:
			if err := s.wait(unix.POLLOUT, -1); err != nil {
				return 0, err
			}
		default:
			return 0, errno
		}
	}
	return 0, net.ErrClosed
}

// sockaddrLen is the size of struct sockaddr_in6, which is longer than struct sockaddr_in.
const sockaddrLen = unix.SizeofSockaddrInet6

// sockaddr is a struct sockaddr_in or sockaddr_in6.
type sockaddr struct {
	raw [sockaddrLen]byte
	len uint32
}

func newSockaddrs(peers []netip.AddrPort) ([]sockaddr, error) {
	addrs := make([]sockaddr, len(peers))
	for i, peer := range peers {
		var err error
		if addrs[i], err = newSockaddr(peer); err != nil {
			return nil, err
		}
	}
	return addrs, nil
}

// newSockaddr returns addr as a sockaddr. It fails if the zone of an IPv6 address is not the name of an interface.
func newSockaddr(addr netip.AddrPort) (sockaddr, error) {
	var s sockaddr
	binary.BigEndian.PutUint16(s.raw[2:], addr.Port())
	ip := addr.Addr().Unmap()
	if ip.Is4() {
		binary.NativeEndian.PutUint16(s.raw[0:], unix.AF_INET)
		copy(s.raw[4:], ip.AsSlice())
		s.len = unix.SizeofSockaddrInet4
		return s, nil
	}
	binary.NativeEndian.PutUint16(s.raw[0:], unix.AF_INET6)
	copy(s.raw[8:], ip.AsSlice())
	s.len = unix.SizeofSockaddrInet6
	if zone := ip.Zone(); zone != "" {
		ifi, err := net.InterfaceByName(zone)
		if err != nil {
			return s, &net.AddrError{Err: "no such network interface", Addr: ip.String()}
		}
		binary.NativeEndian.PutUint32(s.raw[24:], uint32(ifi.Index))
	}
	return s, nil
}

// addrPort returns the address in the first n bytes of s without its IPv6 zone, or the zero AddrPort if they contain no
// address.
func (s *sockaddr) addrPort(n uint32) netip.AddrPort {
	port := binary.BigEndian.Uint16(s.raw[2:])
	switch {
	case n >= unix.SizeofSockaddrInet4 && binary.NativeEndian.Uint16(s.raw[0:]) == unix.AF_INET:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(s.raw[4:8])), port)
	case n >= unix.SizeofSockaddrInet6 && binary.NativeEndian.Uint16(s.raw[0:]) == unix.AF_INET6:
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(s.raw[8:24])).Unmap(), port)
	}
	return netip.AddrPort{}
}

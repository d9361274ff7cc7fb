package udp

import (
	"encoding/binary"
	"net"
	"net/netip"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mmsgSocket moves many datagrams a system call, by sendmmsg and recvmmsg, and
// gathers their parts in the kernel. Package net has no such call, and
// golang.org/x/net allocates for every datagram that arrives.
type mmsgSocket struct {
	conn  *net.UDPConn
	raw   syscall.RawConn
	peers []sockaddr
	out   mmsgSend
	in    mmsgRecv
}

// mmsghdr is the kernel's struct mmsghdr.
type mmsghdr struct {
	hdr unix.Msghdr
	len uint32
}

type mmsgSend struct {
	msgs [sendBatch]mmsghdr
	iovs [sendBatch][len(outgoing{}.parts)]unix.Iovec
	// call is made once, so that passing it on does not allocate; todo and
	// mayWait are its arguments, done and errno its results.
	call       func(fd uintptr) bool
	todo, done int
	mayWait    bool
	errno      syscall.Errno
}

type mmsgRecv struct {
	msgs       [ringLen]mmsghdr
	iovs       [ringLen]unix.Iovec
	names      [ringLen]sockaddr
	slots      [ringLen][slotLen]byte
	call       func(fd uintptr) bool
	look       func(fd uintptr)
	todo, done int
	errno      syscall.Errno
}

// newMmsgSocket returns a plain socket where the kernel or a sandbox does not
// have the calls.
func newMmsgSocket(conn *net.UDPConn, peers []netip.AddrPort) (socket, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	if !hasMmsg(raw) {
		return newPlainSocket(conn, peers)
	}
	s := &mmsgSocket{conn: conn, raw: raw}
	for _, peer := range peers {
		addr, err := newSockaddr(peer)
		if err != nil {
			return nil, err
		}
		s.peers = append(s.peers, addr)
	}
	for i := range s.out.msgs {
		s.out.msgs[i].hdr.Iov = &s.out.iovs[i][0]
	}
	for i := range s.in.msgs {
		s.in.iovs[i].Base = &s.in.slots[i][0]
		s.in.iovs[i].SetLen(slotLen)
		hdr := &s.in.msgs[i].hdr
		hdr.Iov = &s.in.iovs[i]
		hdr.SetIovlen(1)
		hdr.Name = &s.in.names[i].raw[0]
	}
	s.out.call, s.in.call = s.out.sendmmsg, s.in.recvmmsg
	s.in.look = func(fd uintptr) {
		if !s.in.recvmmsg(fd) {
			s.in.done, s.in.errno = 0, 0
		}
	}
	return s, nil
}

// hasMmsg tries both calls with no datagram.
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

func (s *mmsgSocket) capabilities() capabilities {
	return capabilities{sendBatch: sendBatch, recvBatch: ringLen, canPoll: true}
}

func (s *mmsgSocket) close() error { return s.conn.Close() }

func (s *mmsgSocket) send(out []outgoing, mayWait bool) (int, error) {
	o := &s.out
	o.todo, o.mayWait = min(len(out), len(o.msgs)), mayWait
	for i := range out[:o.todo] {
		hdr := &o.msgs[i].hdr
		peer := &s.peers[out[i].peer]
		hdr.Name, hdr.Namelen = &peer.raw[0], peer.len
		n := 0
		for _, part := range out[i].parts {
			if len(part) == 0 {
				continue
			}
			o.iovs[i][n].Base = unsafe.SliceData(part)
			o.iovs[i][n].SetLen(len(part))
			n++
		}
		hdr.SetIovlen(n)
	}
	err := s.raw.Write(o.call)
	// The parts are the caller's: keep no hold of them.
	clear(o.iovs[:o.todo])
	runtime.KeepAlive(out)
	if err != nil {
		return 0, err
	}
	if o.errno != 0 {
		return 0, o.errno
	}
	return o.done, nil
}

// sendmmsg reports false if it must wait for room in the socket's buffer.
func (o *mmsgSend) sendmmsg(fd uintptr) bool {
	for {
		n, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, fd, uintptr(unsafe.Pointer(&o.msgs[0])), uintptr(o.todo), unix.MSG_DONTWAIT, 0, 0)
		switch {
		case errno == unix.EINTR:
			continue
		case errno == unix.EAGAIN && o.mayWait:
			return false
		case errno == 0:
			o.done, o.errno = int(n), 0
		default:
			o.done, o.errno = 0, errno
		}
		return true
	}
}

func (s *mmsgSocket) recv(in []incoming) (int, error) {
	r := &s.in
	r.todo = min(len(in), len(r.msgs))
	if err := s.raw.Read(r.call); err != nil {
		return 0, err
	}
	return r.taken(in)
}

func (s *mmsgSocket) poll(in []incoming) (int, error) {
	r := &s.in
	r.todo = min(len(in), len(r.msgs))
	if err := s.raw.Control(r.look); err != nil {
		return 0, err
	}
	return r.taken(in)
}

// taken describes what the last call has received.
func (r *mmsgRecv) taken(in []incoming) (int, error) {
	if r.errno != 0 {
		return 0, r.errno
	}
	for i := range r.done {
		msg := &r.msgs[i]
		in[i] = incoming{
			bytes: r.slots[i][:min(msg.len, slotLen)],
			from:  r.names[i].addrPort(msg.hdr.Namelen),
			cut:   msg.hdr.Flags&unix.MSG_TRUNC != 0,
		}
	}
	return r.done, nil
}

// recvmmsg reports false if it must wait for a datagram.
func (r *mmsgRecv) recvmmsg(fd uintptr) bool {
	for i := range r.msgs[:r.todo] {
		r.msgs[i].hdr.Namelen = sockaddrLen
	}
	for {
		n, _, errno := unix.Syscall6(unix.SYS_RECVMMSG, fd, uintptr(unsafe.Pointer(&r.msgs[0])), uintptr(r.todo), unix.MSG_DONTWAIT, 0, 0)
		switch errno {
		case unix.EINTR:
			continue
		case unix.EAGAIN:
			return false
		case 0:
			r.done, r.errno = int(n), 0
		default:
			r.done, r.errno = 0, errno
		}
		return true
	}
}

// sockaddrLen is the size of a struct sockaddr_in6, the longer of the two.
const sockaddrLen = unix.SizeofSockaddrInet6

// sockaddr is a struct sockaddr_in or sockaddr_in6.
type sockaddr struct {
	raw [sockaddrLen]byte
	len uint32
}

// newSockaddr fails if the zone of an IPv6 address is no interface.
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

// addrPort returns the address, without an IPv6 zone, of which the first n bytes
// were filled in.
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

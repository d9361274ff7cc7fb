package udp

import (
	"net"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxHead is the maximum length in bytes of the head of a datagram received into a separate buffer.
const maxHead = 128

// directReceive receives payload directly into the caller's memory. It supports a single datagram, whose head it
// receives into a separate buffer, and datagrams without heads that the kernel has coalesced. It assembles all other
// datagrams from their pieces.
type directReceive struct {
	msg     mmsghdr
	iovs    [3]unix.Iovec
	name    sockaddr
	control segmentControl
	head    [maxHead]byte
	// overflow holds bytes that do not fit into the caller's buffer, and datagrams assembled from pieces. It is allocated
	// on first use.
	overflow []byte
}

// pollInto implements socket. While datagrams of an earlier call are left, it falls back to poll, so that they stay in
// order. Coalesced datagrams with heads are assembled in overflow, because buf would contain their heads as well.
func (s *mmsgSocket) pollInto(in []incoming, head int, buf []byte) (int, error) {
	receive := &s.direct
	if s.in.next != s.in.received || head > maxHead || len(buf) == 0 {
		return s.poll(in)
	}
	if receive.overflow == nil {
		receive.overflow = make([]byte, maxHead+2*pieceLen)
	}
	buf = buf[:min(len(buf), pieceLen)]
	n, err := s.recvInto(head, buf)
	if n < 0 || err != nil {
		return 0, err
	}
	from := receive.name.addrPort(receive.msg.hdr.Namelen)
	cut := receive.msg.hdr.Flags&unix.MSG_TRUNC != 0
	size := segmentSize(receive.control[:min(int(receive.msg.hdr.Controllen), len(receive.control))])
	if size <= 0 || size > n {
		size = n
	}
	if head > 0 && size == n && n <= head+len(buf) { // a single datagram that fits
		in[0] = incoming{bytes: receive.head[:min(n, head)], from: from, truncated: cut}
		if n > head {
			in[0].rest = buf[:n-head]
		}
		return 1, nil
	}
	all := buf[:min(n, len(buf))]
	if head > 0 || n > len(buf) {
		all = receive.assemble(n, head, buf)
	}
	in[0] = incoming{bytes: all, from: from, truncated: cut}
	if size < n {
		in[0].segmentLen = size
		s.in.uncoalesced = 0
	}
	return 1, nil
}

// assemble joins the pieces of a received datagram in l.overflow.
func (l *directReceive) assemble(n, head int, buf []byte) []byte {
	// Move the bytes in overflow to their final offset first, because the copies below may overwrite them.
	if rest := n - head - len(buf); rest > 0 {
		copy(l.overflow[head+len(buf):], l.overflow[:rest])
	}
	copy(l.overflow[head:n], buf[:min(max(n-head, 0), len(buf))])
	copy(l.overflow[:min(head, n)], l.head[:])
	return l.overflow[:n]
}

// recvInto receives one datagram, or several that the kernel has coalesced. It puts the first head bytes into
// s.direct.head, the next bytes into buf, and the rest into overflow. It returns -1 if no datagram is available: a
// datagram may be empty.
func (s *mmsgSocket) recvInto(head int, buf []byte) (int, error) {
	s.descriptor.recvMu.Lock()
	defer s.descriptor.recvMu.Unlock()
	receive := &s.direct
	iov := receive.iovs[:0]
	for _, part := range [...][]byte{receive.head[:head], buf, receive.overflow[:pieceLen]} {
		if len(part) > 0 {
			iov = append(iov, unix.Iovec{Base: &part[0]})
			iov[len(iov)-1].SetLen(len(part))
		}
	}
	hdr := &receive.msg.hdr
	hdr.Iov = &receive.iovs[0]
	hdr.SetIovlen(len(iov))
	hdr.Name = &receive.name.raw[0]
	hdr.Control = &receive.control[0]
	defer clear(receive.iovs[:]) // do not retain the caller's memory
	for !s.closed.Load() {
		hdr.Namelen = sockaddrLen
		hdr.SetControllen(len(receive.control))
		n, _, errno := unix.RawSyscall(unix.SYS_RECVMSG, uintptr(s.fd), uintptr(unsafe.Pointer(hdr)), unix.MSG_DONTWAIT)
		switch errno {
		case 0:
			return int(n), nil
		case unix.EAGAIN:
			return -1, nil
		case unix.EINTR:
		default:
			return 0, errno
		}
	}
	return 0, net.ErrClosed
}

// peek leaves the datagram in the socket.
func (s *mmsgSocket) peek(head []byte) (int, netip.AddrPort, error) {
	s.descriptor.recvMu.Lock()
	defer s.descriptor.recvMu.Unlock()
	receive := &s.direct
	for !s.closed.Load() {
		length := uint32(sockaddrLen)
		n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(s.fd), uintptr(unsafe.Pointer(&head[0])),
			uintptr(len(head)),
			unix.MSG_DONTWAIT|unix.MSG_PEEK, uintptr(unsafe.Pointer(&receive.name)), uintptr(unsafe.Pointer(&length)))
		switch errno {
		case 0:
			return int(n), receive.name.addrPort(length), nil
		case unix.EAGAIN:
			return 0, netip.AddrPort{}, nil
		case unix.EINTR:
		default:
			return 0, netip.AddrPort{}, errno
		}
	}
	return 0, netip.AddrPort{}, net.ErrClosed
}

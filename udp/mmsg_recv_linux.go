package udp

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// pieceSlots and pieceLen are the receive buffers of a socket for which the
	// kernel puts datagrams together: as many bytes as 360 datagrams.
	pieceSlots = 8
	pieceLen   = 1 << 16
)

// mmsgRecv receives by recvmmsg, into slots of its own.
type mmsgRecv struct {
	msgs     []mmsghdr
	iovs     []unix.Iovec
	names    []sockaddr
	controls []segmentControl
	slots    [][]byte
	// msgs[next:have], from byte off of the first, are not handed out yet.
	next, off, have int

	call  func(fd uintptr) bool
	look  func(fd uintptr)
	errno syscall.Errno
}

// init makes room for single datagrams, or for pieces that the kernel puts
// together.
func (r *mmsgRecv) init(coalesces bool) {
	slots, length := ringLen, slotLen
	if coalesces {
		slots, length = pieceSlots, pieceLen
	}
	r.msgs, r.iovs = make([]mmsghdr, slots), make([]unix.Iovec, slots)
	r.names, r.controls = make([]sockaddr, slots), make([]segmentControl, slots)
	all := make([]byte, slots*length)
	for i := range r.msgs {
		slot := all[i*length : (i+1)*length]
		r.slots = append(r.slots, slot)
		r.iovs[i].Base = &slot[0]
		r.iovs[i].SetLen(length)
		hdr := &r.msgs[i].hdr
		hdr.Iov = &r.iovs[i]
		hdr.SetIovlen(1)
		hdr.Name = &r.names[i].raw[0]
		hdr.Control = &r.controls[i][0]
	}
}

func (s *mmsgSocket) recv(in []incoming) (int, error) {
	r := &s.in
	if r.next == r.have {
		if err := s.raw.Read(r.call); err != nil {
			return 0, err
		}
	}
	return r.hand(in)
}

func (s *mmsgSocket) poll(in []incoming) (int, error) {
	r := &s.in
	if r.next == r.have {
		if err := s.raw.Control(r.look); err != nil {
			return 0, err
		}
	}
	return r.hand(in)
}

// recvmmsg reports false if it must wait for a datagram.
func (r *mmsgRecv) recvmmsg(fd uintptr) bool {
	for i := range r.msgs {
		r.msgs[i].hdr.Namelen = sockaddrLen
		r.msgs[i].hdr.SetControllen(len(r.controls[i]))
	}
	r.next, r.off, r.have, r.errno = 0, 0, 0, 0
	for {
		n, _, errno := unix.Syscall6(unix.SYS_RECVMMSG, fd, uintptr(unsafe.Pointer(&r.msgs[0])), uintptr(len(r.msgs)), unix.MSG_DONTWAIT, 0, 0)
		switch errno {
		case unix.EINTR:
			continue
		case unix.EAGAIN:
			return false
		case 0:
			r.have = int(n)
		default:
			r.errno = errno
		}
		return true
	}
}

// hand describes as many of the datagrams that have arrived as there is room for.
func (r *mmsgRecv) hand(in []incoming) (n int, err error) {
	if r.errno != 0 {
		err, r.errno = r.errno, 0
		return 0, err
	}
	for n < len(in) && r.next < r.have {
		msg := &r.msgs[r.next]
		piece := r.slots[r.next][:min(int(msg.len), len(r.slots[r.next]))]
		size := coalesced(r.controls[r.next][:min(int(msg.hdr.Controllen), len(r.controls[r.next]))])
		if size <= 0 {
			size = len(piece)
		}
		end := min(r.off+size, len(piece))
		in[n] = incoming{
			bytes: piece[r.off:end:end],
			from:  r.names[r.next].addrPort(msg.hdr.Namelen),
			cut:   msg.hdr.Flags&unix.MSG_TRUNC != 0,
		}
		n++
		if r.off = end; end == len(piece) {
			r.next, r.off = r.next+1, 0
		}
	}
	return n, nil
}

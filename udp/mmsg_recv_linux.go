package udp

import (
	"net"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/internal/anonmem"
)

const (
	// pieceSlots and pieceLen are the number and the size of the receive buffers when the kernel coalesces datagrams.
	// The buffers hold 360 datagrams.
	pieceSlots = 8
	pieceLen   = 1 << 16
)

// mmsgRecv receives datagrams into its own buffers, the slots.
type mmsgRecv struct {
	msgs     []mmsghdr
	iovs     []unix.Iovec
	names    []sockaddr
	controls []segmentControl
	slots    [][]byte
	// msgs[next:received] are the messages that have not been returned completely. off is the position up to which the
	// first of them has been returned.
	next, off, received int
	// groFixed is set if coalescing must not be enabled or disabled.
	groFixed bool
	// oneByOne is set if a system call may receive only one message.
	oneByOne bool
	// pollHits is the number of consecutive polls that found a datagram.
	pollHits int
	// groEnabled is set while the kernel coalesces datagrams. During that time, uncoalesced is the number of
	// consecutive datagrams that were not coalesced; at other times, longDatagrams is the number of long datagrams
	// received close together.
	groEnabled                 bool
	uncoalesced, longDatagrams int
}

// init allocates the slots: for long datagrams and coalesced pieces if long is set, and otherwise for single datagrams
// of the usual size. It returns their memory, which the caller must pass to anonmem.Put when the slots are not in use
// any more. The memory is outside of Go's heap because most of it is never written to.
func (r *mmsgRecv) init(long bool) (memory []byte, err error) {
	slots, length := ringLen, slotLen
	if long {
		slots, length = pieceSlots, pieceLen
	}
	r.slots = nil
	r.msgs, r.iovs = make([]mmsghdr, slots), make([]unix.Iovec, slots)
	r.names, r.controls = make([]sockaddr, slots), make([]segmentControl, slots)
	if memory, err = anonmem.Get(slots * length); err != nil {
		return nil, err
	}
	for i := range r.msgs {
		slot := memory[i*length : (i+1)*length]
		r.slots = append(r.slots, slot)
		r.iovs[i].Base = &slot[0]
		r.iovs[i].SetLen(length)
		hdr := &r.msgs[i].hdr
		hdr.Iov = &r.iovs[i]
		hdr.SetIovlen(1)
		hdr.Name = &r.names[i].raw[0]
		hdr.Control = &r.controls[i][0]
	}
	return memory, nil
}

func (s *mmsgSocket) recv(in []incoming) (int, error) {
	for {
		n, err := s.poll(in)
		if n > 0 || err != nil {
			return n, err
		}
		s.descriptor.recvMu.Lock()
		err = s.wait(unix.POLLIN, -1)
		s.descriptor.recvMu.Unlock()
		if err != nil {
			return 0, err
		}
	}
}

// poll implements socket. It makes a system call only after all datagrams of the previous one have been returned,
// because the calls share their buffers.
func (s *mmsgSocket) poll(in []incoming) (int, error) {
	receiver := &s.in
	if receiver.next == receiver.received {
		if err := s.recvmmsg(); err != nil {
			return 0, err
		}
	}
	return receiver.deliver(in), nil
}

func (s *mmsgSocket) isDrained() bool { return s.in.next == s.in.received }

func (s *mmsgSocket) sleep() bool { return s.isDrained() }

// unwatch does nothing: progress.Group does not watch the socket itself either while callers poll.
func (s *mmsgSocket) unwatch() {}

func (s *mmsgSocket) pollFD() int { return s.fd }

// recvmmsg receives available datagrams into the slots. Unless the last polls found datagrams, it receives a single
// one, by the fastest system call.
func (s *mmsgSocket) recvmmsg() error {
	s.descriptor.recvMu.Lock()
	err := s.receive()
	s.descriptor.recvMu.Unlock() // not deferred: that would lengthen a poll by 5 %
	return err
}

// receive does the work of recvmmsg; the caller holds the lock.
func (s *mmsgSocket) receive() error {
	receiver := &s.in
	receiver.next, receiver.off, receiver.received = 0, 0, 0
	for !s.closed.Load() {
		var n uintptr
		var errno unix.Errno
		switch {
		case receiver.pollHits > 1 && !receiver.oneByOne:
			for i := range receiver.msgs {
				receiver.reset(i)
			}
			n, _, errno = unix.RawSyscall6(unix.SYS_RECVMMSG, uintptr(s.fd), uintptr(unsafe.Pointer(&receiver.msgs[0])),
				uintptr(len(receiver.msgs)), unix.MSG_DONTWAIT, 0, 0)
		case receiver.groEnabled:
			receiver.reset(0)
			n, _, errno = unix.RawSyscall(unix.SYS_RECVMSG, uintptr(s.fd), uintptr(unsafe.Pointer(&receiver.msgs[0].hdr)),
				unix.MSG_DONTWAIT)
			if errno == 0 {
				receiver.msgs[0].len, n = uint32(n), 1
			}
		default:
			n, errno = s.recvfrom()
		}
		switch errno {
		case unix.EINTR:
		case unix.EAGAIN:
			receiver.pollHits = 0
			return nil
		case 0:
			receiver.pollHits++
			receiver.received = int(n)
			if s.caps.canCoalesce && !receiver.groFixed {
				s.chooseGRO()
			}
			return nil
		default:
			return errno
		}
	}
	return net.ErrClosed
}

// recvfrom receives one uncoalesced datagram. It gives the result of recvmsg in a fifth less time.
func (s *mmsgSocket) recvfrom() (uintptr, unix.Errno) {
	r := &s.in
	msg, slot := &r.msgs[0], r.slots[0]
	msg.hdr.Namelen = sockaddrLen
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(s.fd), uintptr(unsafe.Pointer(&slot[0])),
		uintptr(len(slot)),
		unix.MSG_DONTWAIT|unix.MSG_TRUNC, uintptr(unsafe.Pointer(msg.hdr.Name)),
		uintptr(unsafe.Pointer(&msg.hdr.Namelen)))
	if errno != 0 {
		return 0, errno
	}
	msg.len, msg.hdr.Flags = uint32(n), 0
	msg.hdr.SetControllen(0)
	if n > uintptr(len(slot)) {
		msg.hdr.Flags = unix.MSG_TRUNC
	}
	return 1, 0
}

// reset resets the fields of message i that the kernel overwrites.
func (r *mmsgRecv) reset(i int) {
	r.msgs[i].hdr.Namelen = sockaddrLen
	r.msgs[i].hdr.SetControllen(len(r.controls[i]))
}

// deliver fills in with received datagrams not yet returned, and returns their number.
func (r *mmsgRecv) deliver(in []incoming) (n int) {
	for n < len(in) && r.next < r.received {
		msg := &r.msgs[r.next]
		piece := r.slots[r.next][:min(int(msg.len), len(r.slots[r.next]))]
		size := segmentSize(r.controls[r.next][:min(int(msg.hdr.Controllen), len(r.controls[r.next]))])
		if size <= 0 {
			size = len(piece)
		}
		end := min(r.off+size, len(piece))
		in[n] = incoming{
			bytes:     piece[r.off:end:end],
			from:      r.names[r.next].addrPort(msg.hdr.Namelen),
			truncated: msg.hdr.Flags&unix.MSG_TRUNC != 0,
		}
		n++
		if r.off = end; end == len(piece) {
			r.next, r.off = r.next+1, 0
		}
	}
	return n
}

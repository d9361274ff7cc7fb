package wire

import (
	"io"
	"net"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/internal/progress"
	"github.com/zrlmpi/zrlmpid/internal/sharedmem"
)

const (
	// socketPolls is after how many polls of an empty ring the socket is examined, which is
	// how the end of the other side is noticed while this one does not sleep.
	socketPolls = 64
	// roomTime is how long Write waits before it polls for room again.
	roomTime = time.Millisecond
)

// RingLink is a connection whose frames go through rings. Its Read does not wait. The socket
// has a byte for a side that is to be woken, and shows that the other side has ended.
type RingLink struct {
	*Link
	mem []byte
	in  ringReader
	out ringWriter
	// polls counts those of an empty ring since the socket was examined, and look is set if
	// the next one is to do it. over is why nothing is written to in any longer.
	polls int
	look  bool
	over  error
	// broken is the rule that the other side has broken, as far as writing shows it.
	broken atomic.Pointer[error]
	hung   atomic.Bool // after HangUp
}

// NewRingLink makes a connection of a socket and the memory that goes with it, with rings of n
// bytes, of which the program writes the first. It takes both over.
func NewRingLink(l *Link, mem []byte, n int, program bool) *RingLink {
	read, written := RingOf(mem, 0, n), RingOf(mem, 1, n)
	if program {
		read, written = written, read
	}
	r := &RingLink{Link: l, mem: mem}
	r.in.Ring, r.out.Ring = read, written
	return r
}

// Read reads what is there; errNothing if that is nothing.
func (r *RingLink) Read(b []byte) (int, error) {
	if err := r.Ready(1); err != nil {
		return 0, err
	}
	n, wake, err := r.in.get(b)
	if wake {
		r.wake()
	}
	return n, err
}

// Ready returns nil if n bytes can be read, errNothing if they may come, and otherwise why they never will.
func (r *RingLink) Ready(n int) error {
	for {
		have, err := r.in.available(n)
		if have >= n || err != nil {
			return err
		}
		if err := r.nothing(); err != nil {
			if have > 0 {
				err = cutOff(err)
			}
			return err
		}
	}
}

// nothing is called when too little is in the ring. It returns why Read does not wait for
// more, or nil if the other side has just ended, and may have written more before.
func (r *RingLink) nothing() error {
	if r.over != nil {
		return r.over
	}
	if err := r.broken.Load(); err != nil {
		return *err
	}
	if r.polls++; r.polls < socketPolls && !r.look {
		return ErrNothing
	}
	r.polls, r.look = 0, false
	end := [1]unix.PollFd{{Fd: int32(r.fd), Events: unix.POLLRDHUP}}
	if n, err := unix.Poll(end[:], 0); n == 0 || err != nil {
		return ErrNothing
	}
	r.over = io.EOF
	return nil
}

// Arena implements rings.
func (r *RingLink) Arena() []byte { return r.mem[MemoryLen(len(r.in.Data)):] }

// TellProcessor has the other side know on which processor this one polls.
func (r *RingLink) TellProcessor() { r.out.Processor.Store(uint32(progress.Processor() + 1)) }

// OtherProcessor returns the processor on which the other side has polled last, or -1.
func (r *RingLink) OtherProcessor() int { return int(r.in.Processor.Load()) - 1 }

// Sleep announces that Read will not be called before the socket is readable, which it stays until Sleep is called
// again. It reports false if there is something to be read that ready has not seen.
func (r *RingLink) Sleep() bool {
	var woken [64]byte
	for n := len(woken); n == len(woken); {
		n, _ = r.Link.Read(woken[:]) // its error is found by nothing
	}
	r.look = true
	return r.over == nil && r.in.waits()
}

// TryWrite implements Stream.
func (r *RingLink) TryWrite(b []byte) int {
	n, _ := r.write(b) // Read returns the error
	return n
}

// write writes what there is room for.
func (r *RingLink) write(b []byte) (int, error) {
	r.Link.out.Lock()
	defer r.Link.out.Unlock()
	if r.closed.Load() {
		return 0, net.ErrClosed
	}
	n, wake, err := r.out.write(b)
	if wake {
		r.wake()
	}
	if err != nil {
		broken := err // has this one take memory, and not each that is nil
		r.broken.Store(&broken)
	}
	return n, err
}

// Write writes all of b, and waits for room. It polls for that: it is for what is written when a session ends, and
// nothing reads the socket any longer.
func (r *RingLink) Write(b []byte) (done int, err error) {
	for !r.hung.Load() {
		n, err := r.write(b[done:])
		if done += n; done == len(b) || err != nil {
			return done, err
		}
		time.Sleep(roomTime)
	}
	return done, net.ErrClosed
}

// Waits reports false if there is room, and otherwise has the other side wake this one when
// there is, unless it has closed the connection.
func (r *RingLink) Waits() bool {
	r.Link.out.Lock()
	defer r.Link.out.Unlock()
	return r.closed.Load() || r.out.waits()
}

// awake is what wakes the other side.
var awake = []byte{0}

// wake wakes the other side. Its only error is that there is so much to be read from the
// socket that it is woken anyway, or that it has gone.
func (r *RingLink) wake() { _, _ = transmit(r.fd, awake) }

// HangUp implements Stream.
func (r *RingLink) HangUp() {
	r.hung.Store(true)
	r.Link.HangUp()
}

// Close implements Stream.
func (r *RingLink) Close() {
	r.HangUp()
	r.Link.Close() // nothing writes any longer
	sharedmem.Unmap(r.mem)
	r.mem, r.in, r.out = nil, ringReader{}, ringWriter{}
}

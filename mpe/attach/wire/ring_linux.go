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
	// socketPolls is the number of polls of an empty ring after which the socket is checked. The check detects the end
	// of the other side even if this side never sleeps.
	socketPolls = 64
	// spaceInterval is the interval at which Write polls for free space.
	spaceInterval = time.Millisecond
)

// RingLink is a connection that exchanges frames through rings. Its Read does not block. The socket is used only to
// wake up the other side, by sending a byte, and to detect the end of the other side.
type RingLink struct {
	*Link
	mem     []byte
	in      ringReader
	out     ringWriter
	awaited *Awaited
	// polls counts the polls of an empty ring since the socket was last checked. checkSocket requests a check at the
	// next poll. endError is the reason why the incoming ring will receive no more data.
	polls       int
	checkSocket bool
	endError    error
	// writeError is a protocol violation by the other side that write has detected.
	writeError atomic.Pointer[error]
	hungUp     atomic.Bool // HangUp has been called
}

// NewRingLink returns a connection that consists of a socket and of memory with rings of n bytes. The program
// writes to the first ring. NewRingLink takes ownership of both the socket and the memory.
func NewRingLink(l *Link, mem []byte, n int, program bool) *RingLink {
	read, written := RingOf(mem, 0, n), RingOf(mem, 1, n)
	if program {
		read, written = written, read
	}
	r := &RingLink{Link: l, mem: mem, awaited: RingOf(mem, 0, n).Awaited}
	r.in.Ring, r.out.Ring = read, written
	return r
}

// Read reads the available bytes. It returns ErrNoData if no byte is available.
func (r *RingLink) Read(b []byte) (int, error) {
	if err := r.Ready(1); err != nil {
		return 0, err
	}
	n, wake, err := r.in.read(b)
	if wake {
		r.wake()
	}
	return n, err
}

// Ready returns nil if n bytes can be read, ErrNoData if they may still arrive, and otherwise the reason why
// they never will.
func (r *RingLink) Ready(n int) error {
	for {
		have, err := r.in.available(n)
		if have >= n || err != nil {
			return err
		}
		if err := r.emptyError(); err != nil {
			if have > 0 {
				err = unexpectedEOF(err)
			}
			return err
		}
	}
}

// emptyError returns the error that Read should return if the ring contains too little data. When it first detects that
// the other side has ended, it returns nil instead, because the other side may have written more data before it ended.
func (r *RingLink) emptyError() error {
	if r.endError != nil {
		return r.endError
	}
	if err := r.writeError.Load(); err != nil {
		return *err
	}
	if r.polls++; r.polls < socketPolls && !r.checkSocket {
		return ErrNoData
	}
	r.polls, r.checkSocket = 0, false
	end := [1]unix.PollFd{{Fd: int32(r.fd), Events: unix.POLLRDHUP}}
	if n, err := unix.Poll(end[:], 0); n == 0 || err != nil {
		return ErrNoData
	}
	r.endError = io.EOF
	return nil
}

// Arena implements Rings.
func (r *RingLink) Arena() []byte { return r.mem[MemoryLen(len(r.in.Data)):] }

// PublishProcessor publishes the number of the processor on which this side polls.
func (r *RingLink) PublishProcessor() { r.out.Processor.Store(uint32(progress.Processor() + 1)) }

// PeerProcessor returns the number of the processor on which the other side last polled, or -1 if it is
// unknown.
func (r *RingLink) PeerProcessor() int { return int(r.in.Processor.Load()) - 1 }

// Awaited implements Rings.
func (r *RingLink) Awaited() *Awaited { return r.awaited }

// Sleep announces that this side will not call Read until the socket becomes readable. The socket then stays
// readable until the next call of Sleep. Sleep returns false if there is data that Ready has not seen.
func (r *RingLink) Sleep() bool {
	var woken [64]byte
	for n := len(woken); n == len(woken); {
		n, _ = r.Link.Read(woken[:]) // nothing detects the error
	}
	r.checkSocket = true
	return r.endError == nil && r.in.requestData()
}

// TryWrite implements Stream.
func (r *RingLink) TryWrite(b []byte) int {
	n, _ := r.write(b) // Read will return the error
	return n
}

// write writes as much of b as fits in the ring.
func (r *RingLink) write(b []byte) (int, error) {
	r.Link.writeMu.Lock()
	defer r.Link.writeMu.Unlock()
	if r.closed.Load() {
		return 0, net.ErrClosed
	}
	n, wake, err := r.out.write(b)
	if wake {
		r.wake()
	}
	if err != nil {
		broken := err // err escapes to the heap only on this path
		r.writeError.Store(&broken)
	}
	return n, err
}

// Write writes all of b. It polls for free space, because it is used at the end of a session, when no goroutine
// reads the socket.
func (r *RingLink) Write(b []byte) (done int, err error) {
	for !r.hungUp.Load() {
		n, err := r.write(b[done:])
		if done += n; done == len(b) || err != nil {
			return done, err
		}
		time.Sleep(spaceInterval)
	}
	return done, net.ErrClosed
}

// RequestSpace returns false if there is free space. Otherwise it returns true and, unless the connection is closed,
// asks the other side to wake up this side when there is space.
func (r *RingLink) RequestSpace() bool {
	r.Link.writeMu.Lock()
	defer r.Link.writeMu.Unlock()
	return r.closed.Load() || r.out.requestSpace()
}

// wakeByte is the byte that is sent through the socket to wake up the other side.
var wakeByte = []byte{0}

// wake wakes up the other side. Sending fails only if the socket is full, in which case the other side wakes up
// anyway, or if the other side is gone.
func (r *RingLink) wake() { _, _ = transmit(r.fd, wakeByte) }

// HangUp implements Stream.
func (r *RingLink) HangUp() {
	r.hungUp.Store(true)
	r.Link.HangUp()
}

// Close implements Stream.
func (r *RingLink) Close() {
	r.HangUp()
	r.Link.Close() // no goroutine is writing any longer
	sharedmem.Unmap(r.mem)
	r.mem, r.in, r.out, r.awaited = nil, ringReader{}, ringWriter{}, nil
}

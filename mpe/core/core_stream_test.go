package core

import (
	"bytes"
	"context"
	"io"
	"syscall"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
)

// SimulatedStream is one end of a connection between a program and a daemon on one host. It implements
// attach.Stream.
type SimulatedStream struct {
	s       *Simulated
	in, out *pipe
}

// pipe is one direction of a connection. Its bytes are readable, or still inTransit. over means that nothing more
// will be written.
type pipe struct {
	bytes     []byte
	inTransit int
	room      int
	over      bool
	last      handshake.Instant // time at which the last write becomes readable
}

func (p *pipe) free() int { return p.room - len(p.bytes) - p.inTransit }

// Streams returns both ends of a connection.
func (s *Simulated) Streams() (program, daemon *SimulatedStream) {
	room := []int{512, 4 << 10, 64 << 10, 208 << 10}[s.w.rng.IntN(4)]
	there, back := &pipe{room: room}, &pipe{room: room}
	return &SimulatedStream{s, back, there}, &SimulatedStream{s, there, back}
}

// Read implements attach.Stream.
func (e *SimulatedStream) Read(b []byte) (int, error) {
	p := e.in
	if err := e.s.wait(context.Background(),
		func() bool { return len(p.bytes) > 0 || p.over && p.inTransit == 0 }); err != nil {
		return 0, err
	}
	if len(p.bytes) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.bytes[:1+e.s.w.rng.IntN(len(p.bytes))])
	p.bytes = p.bytes[n:]
	return n, nil
}

// Write implements attach.Stream.
func (e *SimulatedStream) Write(b []byte) (n int, err error) {
	p := e.out
	for n < len(b) {
		if err := e.s.wait(context.Background(), func() bool { return p.free() > 0 || p.over }); err != nil {
			return n, err
		}
		if p.over {
			return n, syscall.EPIPE
		}
		n += e.TryWrite(b[n:])
	}
	return n, nil
}

// TryWrite implements attach.Stream.
func (e *SimulatedStream) TryWrite(b []byte) int {
	p := e.out
	if p.over {
		return 0
	}
	n := min(len(b), p.free())
	if n == 0 {
		return 0
	}
	p.inTransit += n
	p.last = max(p.last, e.s.w.now+time.Duration(e.s.w.rng.IntN(20))*time.Microsecond)
	moved := bytes.Clone(b[:n])
	e.s.after(p.last-e.s.w.now, func() {
		p.bytes = append(p.bytes, moved...)
		p.inTransit -= n
	})
	return n
}

// StopReading implements attach.Stream.
func (e *SimulatedStream) StopReading() { e.in.over = true }

// HangUp implements attach.Stream.
func (e *SimulatedStream) HangUp() { e.in.over, e.out.over = true, true }

// Close implements attach.Stream.
func (e *SimulatedStream) Close() { e.HangUp() }

// Go implements attach.Stream.
func (e *SimulatedStream) Go(f func()) { e.s.w.spawn(e.s.w.process(), f) }

// After implements attach.Stream.
func (e *SimulatedStream) After(d time.Duration, f func()) (stop func() bool) {
	p, over := e.s.w.process(), false
	e.s.after(d, func() {
		if !over && (p == nil || !p.killed) {
			e.s.w.spawn(p, f)
		}
		over = true
	})
	return func() bool {
		stopped := !over
		over = true
		return stopped
	}
}

// Await implements attach.Stream.
func (e *SimulatedStream) Await(ctx context.Context, c <-chan struct{}) error {
	got := false
	return e.s.wait(ctx, func() bool {
		if !got {
			select {
			case <-c:
				got = true
			default:
			}
		}
		return got
	})
}

// process returns the process of the running program, or nil.
func (w *world) process() *process {
	if w.current == nil {
		return nil
	}
	return w.current.process
}

// Serve runs f as a goroutine of a daemon, which survives when a program is killed.
func (s *Simulated) Serve(f func()) { s.w.spawn(nil, f) }

// KillAfter kills the process of the running program after some time, and then calls then to do what the system
// does when a process ends.
func (s *Simulated) KillAfter(d time.Duration, then func()) {
	p := s.w.process()
	s.after(d, func() {
		p.killed = true
		s.w.kill(func(b *blocking) bool { return b.process == p })
		then()
	})
}

// Pass advances the simulated time.
func (s *Simulated) Pass(d time.Duration) { s.w.until(s.w.now + d) }

// Unexpected returns the number of messages of a communicator that no receive has matched.
func (d *SimulatedDevice) Unexpected(comm uint32) (n int) {
	d.matching.forComm(comm).EachUnexpected(func(_, _ int32, _ unexpected) bool {
		n++
		return true
	})
	return n
}

// Goroutines returns the number of goroutines of daemons.
func (s *Simulated) Goroutines() (n int) {
	for _, b := range s.w.programs {
		if b.process == nil {
			n++
		}
	}
	return n
}

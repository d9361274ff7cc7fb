package attach

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/internal/progress"
	"github.com/zrlmpi/zrlmpid/internal/sharedmem"
	"github.com/zrlmpi/zrlmpid/mpe"
)

// ringConn is a program's socket and rings. Reads wait.
type ringConn struct {
	*net.UnixConn
	r    *ringLink
	once sync.Once
}

// mapRings maps what the daemon has sent.
func mapRings(t testing.TB, g *greeting, n, arena uint64) rawConn {
	t.Helper()
	mem, err := sharedmem.Map(g.fd, memoryLen(int(n))+int(arena))
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(g.fd)
	f, err := g.UnixConn.File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		t.Fatal(err)
	}
	return &ringConn{UnixConn: g.UnixConn, r: newRingLink(&link{fd: fd}, mem, int(n), true)}
}

func (c *ringConn) Read(b []byte) (n int, err error) {
	for {
		if n, err = c.r.Read(b); !errors.Is(err, errNothing) {
			return n, err
		}
		runtime.Gosched()
	}
}

func (c *ringConn) Write(b []byte) (int, error) { return c.r.Write(b) }

func (c *ringConn) Close() error {
	c.once.Do(func() {
		c.r.HangUp() // its memory stays: a goroutine may still write
		c.UnixConn.Close()
	})
	return nil
}

// attachRings attaches with rings.
func (h *harness) attachRings(t testing.TB, rank int32) (*rawClient, *ringLink) {
	t.Helper()
	c := h.attach(t, rank)
	return c, c.conn.(*ringConn).r
}

// TestHostileCounters: a program whose counters cannot be is disconnected, and no other one
// notices.
func TestHostileCounters(t *testing.T) {
	noLeak(t)
	h := serve(t, newWorld(3, 0, 2), Options{})
	other := h.dial(t, 2)
	for _, tt := range []struct {
		name string
		do   func(c *rawClient, r *ringLink)
		text string
	}{
		{"more than the ring written", func(_ *rawClient, r *ringLink) { r.out.written.Store(ringLen + 1) }, "bytes written to a ring"},
		{"written goes back", func(c *rawClient, r *ringLink) {
			c.write(startFrame(sendStart(1, 0), nil))
			c.done()
			r.out.written.Store(1)
		}, "bytes written to a ring"},
		{"all ones", func(_ *rawClient, r *ringLink) { r.out.written.Store(^uint64(0)) }, "bytes written to a ring"},
		{"more read than was written", func(c *rawClient, r *ringLink) {
			r.in.read.Store(1 << 40)
			for id := range uint64(3) { // its answers make the daemon look
				c.write(startFrame(recvStart(id, chunkLen), nil))
			}
			data := make([]byte, chunkLen)
			for range 6 {
				wait(t, send(t, other, 0, 0, data))
				wait(t, send(t, other, 0, 0, data))
			}
		}, ""},
		{"zeros", func(_ *rawClient, r *ringLink) { r.out.written.Store(8) }, "is not a frame that a program sends"},
		{"a frame that is too long", func(c *rawClient, _ *ringLink) { c.write(appendHeader(nil, frameData, maxBody+1)) }, "a frame has"},
		{"half a frame", func(c *rawClient, _ *ringLink) {
			c.write(startFrame(sendStart(1, 4), nil)[:20])
			c.conn.CloseWrite()
		}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, r := h.attachRings(t, 0)
			r.in.readerSleeps.Store(1) // what it wakes need not sleep
			r.out.writerSleeps.Store(1)
			tt.do(c, r)
			r.wake()
			if tt.text != "" {
				// Its own counters may be what is wrong: the daemon's are right.
				if e := c.refusal(); e.Reason != Violation || !strings.Contains(e.Text, tt.text) {
					t.Errorf("%v: %q", e.Reason, e.Text)
				}
			} else if tt.name == "half a frame" {
				if _, err := io.Copy(io.Discard, c.conn); err != nil {
					t.Error(err)
				}
			}
			c.conn.Close()
			until(t, "the rank is free", func() bool { return len(h.server.Attached()) == 1 })
			if n := h.w.openOps(0); n != 0 {
				t.Errorf("%d operations are left", n)
			}
			h.w.mu.Lock()
			h.w.ranks[0].sent, h.w.ranks[1].sent = nil, nil
			h.w.mu.Unlock()
		})
	}
	wait(t, send(t, other, 1, 0, []byte("well")))
}

// TestChangesWhileRead: a program that writes into its ring all the time, also into frames that are
// being read, and changes its counters, ends in a violation at most.
func TestChangesWhileRead(t *testing.T) {
	noLeak(t)
	h := serve(t, newWorld(3, 0, 2), Options{Limits: Limits{Operations: 64, Bytes: 1 << 20}})
	other := h.dial(t, 2)
	for seed := range uint64(20) {
		_, r := h.attachRings(t, 0)
		frames := startFrame(sendStart(seed, 8), []byte("abcdefgh"))
		for i := range 2000 {
			n := copy(r.out.data[i*len(frames)%(1<<19):], frames)
			r.out.data[i*7%(1<<19)] = byte(seed) // not atomic, as from another process
			r.out.written.Add(uint64(n))
			if clears(r.out.readerSleeps) || i%100 == 0 {
				r.wake()
			}
		}
		r.HangUp()
		until(t, "the rank is free", func() bool { return len(h.server.Attached()) == 1 })
		h.w.mu.Lock()
		h.w.ranks[0].sent, h.w.ranks[1].sent = nil, nil
		h.w.mu.Unlock()
	}
	wait(t, send(t, other, 1, 0, []byte("well")))
}

// TestSlowProgram: a program that takes answers out slowly gets all of them, also where the
// ring is full again and again, and is woken for each part.
func TestSlowProgram(t *testing.T) {
	h := serve(t, newWorld(2, 0, 1), Options{})
	a, b := h.dial(t, 0), h.dial(t, 1)
	data := pattern(1, 5*ringLen+3)
	got := make([]byte, len(data))
	r := recv(t, b, 0, 0, got)
	s := send(t, a, 1, 0, data)
	wait(t, s)
	wait(t, r)
	same(t, "the message", got, data)
}

// sleeps reports whether the daemon has announced to a program that it sleeps.
func sleeps(c *Client) bool { return c.stream.(*ringLink).out.readerSleeps.Load() != 0 }

// TestWakeUps: messages that come while both sides sleep arrive.
func TestWakeUps(t *testing.T) {
	h := serve(t, newWorld(2, 0, 1), Options{})
	a, b := h.dial(t, 0), h.dial(t, 1)
	buf := make([]byte, 4)
	for range 20 {
		r := recv(t, b, 0, 0, buf)
		until(t, "the daemon sleeps", func() bool { return sleeps(a) && sleeps(b) })
		wait(t, send(t, a, 1, 0, []byte("well")))
		wait(t, r)
	}
	if _, _, err := a.Probe(within(t), mpe.Match{Source: 1}, false); err != nil {
		t.Error(err)
	}
}

// TestProcessors: a program knows on which processor the daemon polls, and the daemon not on which the program does.
func TestProcessors(t *testing.T) {
	h := serve(t, newWorld(2, 0, 1), Options{Oversubscribed: true})
	c := h.dial(t, 0)
	r := c.stream.(*ringLink)
	until(t, "the daemon has polled", func() bool {
		wait(t, send(t, c, 1, 0, nil)) // so that it does
		return order.Uint32(r.mem[2048+512:]) > 0
	})
	if r.otherProcessor() < 0 || order.Uint32(r.mem[512:]) != 0 {
		t.Errorf("the daemon is on processor %d; the program says %d", r.otherProcessor(), order.Uint32(r.mem[512:]))
	}
}

// TestSleepsWhileOthersPoll: a session in which nothing happens costs other callers that poll nothing, and
// is polled again when something comes.
func TestSleepsWhileOthersPoll(t *testing.T) {
	h := serve(t, newWorld(2, 0, 1), Options{})
	a, b := h.dial(t, 0), h.dial(t, 1)
	var stop atomic.Bool
	var callers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) { // so that sessions have no core to poll themselves
		callers.Go(func() {
			var p progress.SpinPolicy
			p.Init(false)
			for !stop.Load() {
				p.PollShared(clock, nil)
			}
		})
	}
	defer callers.Wait()
	defer stop.Store(true)
	buf := make([]byte, 4)
	for range 5 {
		r := recv(t, b, 0, 0, buf)
		until(t, "the daemon sleeps", func() bool { return sleeps(a) && sleeps(b) })
		wait(t, send(t, a, 1, 0, []byte("well")))
		wait(t, r)
	}
	stop.Store(true)
	callers.Wait()
	h.server.mu.Lock()
	p := h.server.attached[1].polling
	h.server.mu.Unlock()
	until(t, "the session sleeps", func() bool { return p.asleep.Load() && sleeps(b) && !p.owned.Load() })
	before := p.rings.(*ringLink).polls
	for range 10 {
		p.Visit()
	}
	if n := p.rings.(*ringLink).polls - before; n != 0 {
		t.Errorf("the ring of a session that sleeps was polled %d times", n)
	}
}

// mappings is how many mappings the process has of memory that is handed over.
func mappings(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(text), "memfd:zrlmpid")
}

// TestRingsAreUnmapped: neither a program that detaches nor one that ends leaves memory behind,
// in the daemon or, if it lives, in itself.
func TestRingsAreUnmapped(t *testing.T) {
	h := serve(t, newWorld(2, 0), Options{})
	before := mappings(t)
	for range 10 {
		c := h.dial(t, 0)
		if n := mappings(t); n != before+2 {
			t.Fatalf("%d mappings, and %d before", n, before)
		}
		r := recv(t, c, 1, 0, make([]byte, 4))
		if err := c.Close(within(t)); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Await(within(t)); !errors.Is(err, mpe.ErrClosed) {
			t.Error(err)
		}
		cmd := exec.Command(os.Args[0])
		if line := startChild(t, cmd, h.socket); line != "attached" {
			t.Fatal(line)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		cmd.Wait()
		until(t, "the rings are unmapped", func() bool { return len(h.server.Attached()) == 0 && mappings(t) == before })
		h.w.mu.Lock()
		h.w.ranks[1].sent = nil
		h.w.mu.Unlock()
	}
}

// askedDevice counts how often it was polled.
type askedDevice struct{ asked int }

func (d *askedDevice) PollOnce() { d.asked++ }
func (d *askedDevice) Sleep(context.Context, <-chan struct{}, time.Duration) error {
	panic("it is polled and does not sleep")
}

// TestFramesBeforePackets: a poll that has handled frames does not ask the rank's sockets, but
// frames do not keep packets waiting for longer.
func TestFramesBeforePackets(t *testing.T) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fds[0])
	defer unix.Close(fds[1])
	mem := make([]byte, memoryLen(minRing))
	program, daemon := newRingLink(&link{fd: fds[0]}, mem, minRing, true), newRingLink(&link{fd: fds[1]}, mem, minRing, false)
	from := &source{daemon}
	s := newSession(NewServer(newWorld(2, 0), Options{}), newFrameReader(from), Credentials{})
	dev := new(askedDevice)
	s.polling = &polling{s: s, rings: daemon, dev: dev, wake: make(chan struct{}, 1)}
	s.open(daemon, from)
	for i, tt := range []struct {
		frames, asked int
	}{{0, 1}, {0, 2}, {1, 2}, {1, 3}, {2, 3}, {0, 4}, {1, 4}, {0, 5}} {
		for range tt.frames {
			if _, err := program.Write(cancelFrame(1)); err != nil { // there is nothing to cancel
				t.Fatal(err)
			}
		}
		if found := s.polling.poll(); found != (tt.frames > 0) || dev.asked != tt.asked {
			t.Errorf("poll %d, of %d frames: found: %v; the rank was asked %d times, want %d", i, tt.frames, found, dev.asked, tt.asked)
		}
	}
	if s.polling.over {
		t.Error(s.polling.err)
	}
}

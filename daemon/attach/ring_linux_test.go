package attach

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/progress"
	"github.com/zrlmpi/zrlmpid/internal/sharedmem"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/attach/attachtest"
	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
)

// ringConn consists of the socket and the rings of a program. Its Read blocks.
type ringConn struct {
	*net.UnixConn
	r       wire.Rings
	in, out wire.Ring
	once    sync.Once
}

// mapRings maps the memory that the daemon has sent.
func mapRings(t testing.TB, g *wire.Greeting, n, arena uint64) attachtest.RawConn {
	t.Helper()
	mem, err := sharedmem.Map(g.FD, wire.MemoryLen(int(n))+int(arena))
	if err != nil {
		t.Fatal(err)
	}
	c := &ringConn{UnixConn: another(t, g.UnixConn), in: wire.RingOf(mem, 1, int(n)), out: wire.RingOf(mem, 0, int(n))}
	s, err := g.Stream(n, arena)
	if err != nil {
		t.Fatal(err)
	}
	c.r = s.(wire.Rings)
	return c
}

// another duplicates the descriptor of a connection.
func another(t testing.TB, conn *net.UnixConn) *net.UnixConn {
	t.Helper()
	f, err := conn.File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		t.Fatal(err)
	}
	return c.(*net.UnixConn)
}

// wake wakes up the daemon.
func (c *ringConn) wake() { _, _ = c.UnixConn.Write([]byte{0}) }

func (c *ringConn) Read(b []byte) (n int, err error) {
	for {
		if n, err = c.r.Read(b); !errors.Is(err, wire.ErrNoData) {
			return n, err
		}
		runtime.Gosched()
	}
}

func (c *ringConn) Write(b []byte) (int, error) { return c.r.Write(b) }

func (c *ringConn) Close() error {
	c.once.Do(func() {
		c.r.HangUp() // the memory stays mapped, because a goroutine may still be writing
		c.UnixConn.Close()
	})
	return nil
}

// attachRings attaches a program that uses rings.
func (h *harness) attachRings(t testing.TB, rank int32) (*attachtest.RawClient, *ringConn) {
	t.Helper()
	c := h.attach(t, rank)
	return c, c.Conn.(*ringConn)
}

// TestHostileCounters checks that a program that sets invalid counters is disconnected, and that other programs
// are not affected.
func TestHostileCounters(t *testing.T) {
	leaksNothing(t)
	h := serve(t, newWorld(3, 0, 2), Options{})
	other := h.dial(t, 2)
	for _, tt := range []struct {
		name string
		do   func(c *attachtest.RawClient, r *ringConn)
		text string
	}{
		{"more than the ring written",
			func(_ *attachtest.RawClient, r *ringConn) { r.out.Written.Store(wire.RingLen + 1) },
			"bytes written to a ring"},
		{"written goes back", func(c *attachtest.RawClient, r *ringConn) {
			c.Write(attachtest.StartFrame(attachtest.SendStart(1, 0), nil))
			c.ReadDone()
			r.out.Written.Store(1)
		}, "bytes written to a ring"},
		{"all ones", func(_ *attachtest.RawClient, r *ringConn) { r.out.Written.Store(^uint64(0)) },
			"bytes written to a ring"},
		{"more read than was written", func(c *attachtest.RawClient, r *ringConn) {
			r.in.Read.Store(1 << 40)
			for id := range uint64(3) { // the answers make the daemon read the counter
				c.Write(attachtest.StartFrame(attachtest.RecvStart(id, wire.ChunkLen), nil))
			}
			data := make([]byte, wire.ChunkLen)
			for range 6 {
				attachtest.Wait(t, attachtest.Send(t, other, 0, 0, data))
				attachtest.Wait(t, attachtest.Send(t, other, 0, 0, data))
			}
		}, ""},
		{"zeros", func(_ *attachtest.RawClient, r *ringConn) { r.out.Written.Store(8) },
			"is not a frame that an attached program sends"},
		{"a frame that is too long", func(c *attachtest.RawClient, _ *ringConn) {
			c.Write(wire.AppendHeader(nil, wire.FrameData, wire.MaxBody+1))
		}, "a frame has"},
		{"half a frame", func(c *attachtest.RawClient, _ *ringConn) {
			c.Write(attachtest.StartFrame(attachtest.SendStart(1, 4), nil)[:20])
			c.Conn.CloseWrite()
		}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, r := h.attachRings(t, 0)
			r.in.ReaderSleeps.Store(1) // the side to be woken up need not be asleep
			r.out.WriterSleeps.Store(1)
			tt.do(c, r)
			r.wake()
			if tt.text != "" {
				// The program's own counters may be wrong, but the daemon's are right.
				if e := c.ReadRefusal(); e.Reason != wire.Violation || !strings.Contains(e.Text, tt.text) {
					t.Errorf("%v: %q", e.Reason, e.Text)
				}
			} else if tt.name == "half a frame" {
				if _, err := io.Copy(io.Discard, c.Conn); err != nil {
					t.Error(err)
				}
			}
			c.Conn.Close()
			attachtest.WaitUntil(t, "the rank is free", func() bool { return len(h.server.AttachedPrograms()) == 1 })
			if n := h.w.openOps(0); n != 0 {
				t.Errorf("%d operations are left", n)
			}
			h.w.mu.Lock()
			h.w.ranks[0].sent, h.w.ranks[1].sent = nil, nil
			h.w.mu.Unlock()
		})
	}
	attachtest.Wait(t, attachtest.Send(t, other, 1, 0, []byte("well")))
}

// TestChangesWhileRead checks that a program that continuously changes its counters and writes to its ring,
// even to frames that are being read, causes at most a protocol violation.
func TestChangesWhileRead(t *testing.T) {
	leaksNothing(t)
	h := serve(t, newWorld(3, 0, 2), Options{Limits: wire.Limits{Operations: 64, Bytes: 1 << 20}})
	other := h.dial(t, 2)
	for seed := range uint64(20) {
		_, r := h.attachRings(t, 0)
		frames := attachtest.StartFrame(attachtest.SendStart(seed, 8), []byte("abcdefgh"))
		for i := range 2000 {
			n := copy(r.out.Data[i*len(frames)%(1<<19):], frames)
			r.out.Data[i*7%(1<<19)] = byte(seed) // not atomic, just as in another process
			r.out.Written.Add(uint64(n))
			if r.out.ReaderSleeps.CompareAndSwap(1, 0) || i%100 == 0 {
				r.wake()
			}
		}
		r.Close()
		attachtest.WaitUntil(t, "the rank is free", func() bool { return len(h.server.AttachedPrograms()) == 1 })
		h.w.mu.Lock()
		h.w.ranks[0].sent, h.w.ranks[1].sent = nil, nil
		h.w.mu.Unlock()
	}
	attachtest.Wait(t, attachtest.Send(t, other, 1, 0, []byte("well")))
}

// TestSlowProgram checks that a slow reader gets all answers even if the ring fills up repeatedly, and that it
// is woken up for each part.
func TestSlowProgram(t *testing.T) {
	h := serve(t, newWorld(2, 0, 1), Options{})
	a, b := h.dial(t, 0), h.dial(t, 1)
	data := attachtest.Pattern(1, 5*wire.RingLen+3)
	got := make([]byte, len(data))
	r := attachtest.Recv(t, b, 0, 0, got)
	s := attachtest.Send(t, a, 1, 0, data)
	attachtest.Wait(t, s)
	attachtest.Wait(t, r)
	attachtest.CheckEqual(t, "the message", got, data)
}

// polling returns the polling state of a session that uses rings, or nil while WELCOME is being sent.
func (h *harness) polling(rank int) *polledSession {
	h.server.mu.Lock()
	defer h.server.mu.Unlock()
	return h.server.sessions[rank].polling
}

// sleeps reports whether the sessions of both programs are asleep.
func (h *harness) sleeps() bool {
	for rank := range 2 {
		if p := h.polling(rank); p == nil || !p.isAsleep.Load() || p.beingPolled.Load() {
			return false
		}
	}
	return true
}

// TestWakeUps checks that messages that are sent while both sides are asleep arrive.
func TestWakeUps(t *testing.T) {
	h := serve(t, newWorld(2, 0, 1), Options{})
	a, b := h.dial(t, 0), h.dial(t, 1)
	buf := make([]byte, 4)
	for range 20 {
		r := attachtest.Recv(t, b, 0, 0, buf)
		attachtest.WaitUntil(t, "the daemon sleeps", h.sleeps)
		attachtest.Wait(t, attachtest.Send(t, a, 1, 0, []byte("well")))
		attachtest.Wait(t, r)
	}
	if _, _, err := a.Probe(attachtest.TestContext(t), mpe.Match{Source: 1}, false); err != nil {
		t.Error(err)
	}
}

// TestProcessors checks that a program knows on which processor the daemon polls, but the daemon does not know
// the program's.
func TestProcessors(t *testing.T) {
	h := serve(t, newWorld(2, 0), Options{Oversubscribed: true})
	c, r := h.attachRings(t, 0)
	attachtest.WaitUntil(t, "the daemon has polled", func() bool {
		c.Write(attachtest.StartFrame(attachtest.SendStart(1, 0), nil)) // makes the daemon poll
		c.ReadDone()
		return r.in.Processor.Load() > 0
	})
	c.Conn.Close()
	attachtest.WaitUntil(t, "the rank is free", func() bool { return len(h.server.AttachedPrograms()) == 0 })
	client := h.dial(t, 0)
	attachtest.Wait(t, attachtest.Send(t, client, 1, 0, nil))
	if n := h.session(0).polling.rings.PeerProcessor(); n >= 0 {
		t.Errorf("the program reports processor %d", n)
	}
}

// TestAwaited checks that a rank knows which operations its program sleeps for, also after the program has awaited more
// operations at once than it can list.
func TestAwaited(t *testing.T) {
	const receives = 20
	h := serve(t, newWorld(2, 0), Options{})
	r, c := h.w.ranks[0], h.dial(t, 0)
	var ops []mpe.Op
	for tag := range receives {
		ops = append(ops, attachtest.Recv(t, c, 1, tag, nil))
	}
	posted := func() bool { return h.w.openOps(0) == receives }
	if attachtest.WaitUntil(t, "the receives are posted", posted); len(r.awaited()) > 0 {
		t.Errorf("tags %v are awaited before the program sleeps", r.awaited())
	}
	answer := func(tag int) { attachtest.Wait(t, attachtest.Send(t, h.w.ranks[1], 0, tag, nil)) }
	for _, tag := range []int{7, 3} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			attachtest.Wait(t, ops[tag])
		}()
		attachtest.WaitUntil(t, "the rank knows", func() bool { return slices.Equal(r.awaited(), []int{tag}) })
		answer(tag)
		<-done
		if got := r.awaited(); len(got) > 0 {
			t.Errorf("tags %v are awaited after the end", got)
		}
	}
	var waits sync.WaitGroup
	for tag, op := range ops {
		if tag != 7 && tag != 3 {
			waits.Go(func() { attachtest.Wait(t, op) })
		}
	}
	attachtest.WaitUntil(t, "the list is full", func() bool { return len(r.awaited()) == len(wire.Awaited{}) })
	for tag := range ops {
		if tag != 7 && tag != 3 {
			answer(tag)
		}
	}
	waits.Wait()
	last := attachtest.Recv(t, c, 1, 0, nil)
	waits.Go(func() { attachtest.Wait(t, last) })
	attachtest.WaitUntil(t, "the rank knows", func() bool { return len(r.awaited()) == 1 })
	answer(0)
	waits.Wait()
}

// TestHostileAwaited checks that a program can only list its own operations as awaited, whatever it writes.
func TestHostileAwaited(t *testing.T) {
	h := serve(t, newWorld(3, 0, 2), Options{})
	other := h.dial(t, 2)
	op := attachtest.Recv(t, other, 1, 9, nil)
	c, r := h.attachRings(t, 0)
	for id, tag := range map[uint64]int{0: 1, 5: 2, ^uint64(0): 3} {
		start := attachtest.RecvStart(id, 0)
		start.Tag = tag
		c.Write(attachtest.StartFrame(start, nil))
	}
	r.wake()
	attachtest.WaitUntil(t, "the receives are posted", func() bool { return h.w.openOps(0) == 3 })
	rank := h.w.ranks[0]
	for _, tt := range []struct {
		words []uint64
		tags  []int
	}{
		{nil, nil},
		{[]uint64{1}, []int{1}},
		{[]uint64{0, 0, 0, 0, 0, 0, 0, 6}, []int{2}},
		{[]uint64{6, 6, 1, 1, 6}, []int{1, 2}},
		{[]uint64{2, 7, ^uint64(0), 1 << 63, 5, 1 << 32, 1<<32 + 1, 3}, nil},
	} {
		for i := range r.out.Awaited {
			r.out.Awaited[i].Store(0)
			if i < len(tt.words) {
				r.out.Awaited[i].Store(tt.words[i])
			}
		}
		got := rank.awaited()
		if slices.Sort(got); !slices.Equal(got, tt.tags) || len(h.w.ranks[2].awaited()) > 0 {
			t.Errorf("words %d: tags %v are awaited, want %v", tt.words, got, tt.tags)
		}
	}
	attachtest.Wait(t, attachtest.Send(t, h.w.ranks[1], 2, 9, nil))
	attachtest.Wait(t, op)
}

// TestSleepsWhileOthersPoll checks that other polling callers do not poll an idle session, and that it is
// polled again when something arrives.
func TestSleepsWhileOthersPoll(t *testing.T) {
	h := serve(t, newWorld(2, 0, 1), Options{})
	a, b := h.dial(t, 0), h.dial(t, 1)
	var stop atomic.Bool
	var callers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) { // leaves the sessions no core on which to poll
		callers.Go(func() {
			var p progress.SpinPolicy
			p.Init(false)
			for !stop.Load() {
				p.PollShared(progress.Clock, nil)
			}
		})
	}
	defer callers.Wait()
	defer stop.Store(true)
	buf := make([]byte, 4)
	for range 5 {
		r := attachtest.Recv(t, b, 0, 0, buf)
		attachtest.WaitUntil(t, "the daemon sleeps", h.sleeps)
		attachtest.Wait(t, attachtest.Send(t, a, 1, 0, []byte("well")))
		attachtest.Wait(t, r)
	}
	stop.Store(true)
	callers.Wait()
	p := h.polling(1)
	visits := func() uint {
		for !p.beingPolled.CompareAndSwap(false, true) {
			runtime.Gosched()
		}
		defer p.beingPolled.Store(false)
		return p.visits
	}
	// A packet that comes late wakes the session up: then the visits count for nothing.
	attachtest.WaitUntil(t, "ten visits of a session that sleeps do not poll it", func() bool {
		before := visits()
		for range 10 {
			p.Visit()
		}
		return p.isAsleep.Load() && visits() == before
	})
}

// mappings returns the number of mappings of handed-over memory in the process.
func mappings(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(text), "memfd:zrlmpid")
}

// TestRingsAreUnmapped checks that no memory stays mapped after a program has detached or ended, neither in the
// daemon nor, if the program is still running, in the program.
func TestRingsAreUnmapped(t *testing.T) {
	h := serve(t, newWorld(2, 0), Options{})
	before := mappings(t)
	for range 10 {
		c := h.dial(t, 0)
		if n := mappings(t); n != before+2 {
			t.Fatalf("%d mappings, and %d before", n, before)
		}
		r := attachtest.Recv(t, c, 1, 0, make([]byte, 4))
		if err := c.Close(attachtest.TestContext(t)); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Await(attachtest.TestContext(t)); !errors.Is(err, mpe.ErrClosed) {
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
		attachtest.WaitUntil(t, "the rings are unmapped",
			func() bool { return len(h.server.AttachedPrograms()) == 0 && mappings(t) == before })
		h.w.mu.Lock()
		h.w.ranks[1].sent = nil
		h.w.mu.Unlock()
	}
}

// askedDevice counts how often it has been polled.
type askedDevice struct{ asked int }

func (d *askedDevice) PollOnce() { d.asked++ }
func (d *askedDevice) Sleep(context.Context, <-chan struct{}, time.Duration) error {
	panic("it is polled and does not sleep")
}

// TestFramesBeforePackets checks that a poll that handles frames does not poll the rank's sockets, and that the
// next poll does, so that packets are not delayed any longer.
func TestFramesBeforePackets(t *testing.T) {
	mem := make([]byte, wire.MemoryLen(wire.MinRing))
	l, err := net.Listen("unix", attachtest.SocketPath(t))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dialled, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	end := func(conn net.Conn, program bool) *wire.RingLink {
		l, err := wire.NewLink(conn.(*net.UnixConn))
		if err != nil {
			t.Fatal(err)
		}
		return wire.NewRingLink(l, mem, wire.MinRing, program)
	}
	program, daemon := end(dialled, true), end(accepted, false)
	s := newSession(NewServer(newWorld(2, 0), Options{}), wire.NewReader(daemon), wire.Credentials{})
	dev := new(askedDevice)
	s.polling = &polledSession{session: s, rings: daemon, dev: dev, wake: make(chan struct{}, 1)}
	s.stream = daemon
	s.openStream()
	for i, tt := range []struct {
		frames, asked int
	}{{0, 1}, {0, 2}, {1, 2}, {1, 3}, {2, 3}, {0, 4}, {1, 4}, {0, 5}} {
		for range tt.frames {
			if _, err := program.Write(wire.AppendID(nil, wire.FrameCancel, 1, 0)); err != nil { // nothing to cancel
				t.Fatal(err)
			}
		}
		if found := s.polling.poll(); found != (tt.frames > 0) || dev.asked != tt.asked {
			t.Errorf("poll %d, of %d frames: found: %v; the rank was asked %d times, want %d", i, tt.frames, found,
				dev.asked, tt.asked)
		}
	}
	if s.polling.finished {
		t.Error(s.polling.err)
	}
}

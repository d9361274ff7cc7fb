//go:build linux

package progress

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestArrivesWhileArmed checks that an event that arrives while a source is being armed for a sleeping caller
// is handled immediately and not only at the poller's next interval. The poller could not handle it, because
// the source had an owner.
func TestArrivesWhileArmed(t *testing.T) {
	s := newSource(t)
	g, o := newGroup(t, false)
	if err := g.Add(s.r, s, time.Hour); err != nil {
		t.Fatal(err)
	}
	var taken atomic.Bool
	s.polled = func(n int) {
		if n > 0 {
			taken.Store(true)
		}
	}
	var once sync.Once
	o.onArmed = func() {
		once.Do(func() {
			s.put()
			for g.Armed() {
				runtime.Gosched()
			}
			if err := g.Heartbeat(t.Context()); err != nil { // by now, the poller has tried
				t.Error(err)
			}
			if taken.Load() {
				t.Error("it was polled while it is owned")
			}
		})
	}
	g.Waiting.Add(1)
	g.Watch()
	if !taken.Load() || !g.Armed() {
		t.Errorf("taken %v, armed %v", taken.Load(), g.Armed())
	}
}

// TestPolling checks that the poller polls at an interval as long as callers keep returning, and otherwise
// watches the source. A call that does not poll counts too, because the poller may already have handled its
// event.
func TestPolling(t *testing.T) {
	for _, interval := range []time.Duration{NetworkInterval, MemoryInterval} {
		for name, come := range map[string]func(g *Group, o *fakeOwner){
			"polls": func(g *Group, _ *fakeOwner) { g.PollOnce() },
			"calls": func(_ *Group, o *fakeOwner) { o.calls.Add(1) },
		} {
			t.Run(interval.String()+"/"+name, func(t *testing.T) { testPolling(t, interval, come) })
		}
	}
}

func testPolling(t *testing.T, interval time.Duration, come func(g *Group, o *fakeOwner)) {
	s := newSource(t)
	g, o := newGroup(t, false)
	if err := g.Add(s.r, s, interval); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	d := g.drivers[0]
	come(g, o)
	for i, step := range []struct {
		readable, visit bool
		want            time.Duration
	}{
		{true, true, interval},
		{false, true, interval},
		{false, false, interval},
		{false, false, 0}, // no caller has polled or made a call
	} {
		if got := d.deadline(step.readable); got != step.want {
			t.Errorf("call %d: again after %v, want %v", i, got, step.want)
		}
		if armed := step.want == 0; d.armed.Load() != armed || g.Armed() != armed || d.owned.Load() {
			t.Errorf("call %d: armed %v, owned %v", i, d.armed.Load(), d.owned.Load())
		}
		if step.visit {
			come(g, o)
		}
	}
	if n := o.ticks.Load(); n != 4 {
		t.Errorf("%d ticks", n)
	}
	if d.deadline(false) != 0 || o.ticks.Load() != 4 {
		t.Error("the poller polls a source that it watches")
	}
}

// TestPollingForSleepers checks that the poller watches a polled source while a caller sleeps.
func TestPollingForSleepers(t *testing.T) {
	s := newSource(t)
	g, _ := newGroup(t, false, s)
	d := g.drivers[0]
	g.PollOnce()
	g.Waiting.Add(1)
	if again := d.deadline(true); again != 0 || !d.armed.Load() {
		t.Errorf("again after %v, armed %v", again, d.armed.Load())
	}
	d.armed.Store(false)
	g.PollOnce() // arms the source before it returns
	if !d.armed.Load() {
		t.Error("the source is not watched while a caller sleeps")
	}
}

// TestPollerWithoutOwnership checks that the poller does not poll a source that has an owner, but tries again
// later.
func TestPollerWithoutOwnership(t *testing.T) {
	s := newSource(t)
	g, _ := newGroup(t, false, s)
	d := g.drivers[0]
	d.acquire()
	if again := d.deadline(true); again != NetworkInterval || s.polls.Load() != 0 {
		t.Errorf("again after %v, %d polls", again, s.polls.Load())
	}
	g.Watch()
	if d.armed.Load() {
		t.Error("it is watched while it is owned")
	}
}

// TestArmTakesWhatIsThere checks that events that arrived before a source goes to sleep are handled.
func TestArmTakesWhatIsThere(t *testing.T) {
	s := newSource(t)
	g, _ := newGroup(t, false, s)
	got := make(chan int, 10)
	s.polled = func(n int) { got <- n }
	s.put()
	g.Watch()
	if n := <-got; n != 1 {
		t.Errorf("%d", n)
	}
	if !g.Armed() {
		t.Error("it is not watched")
	}
}

// TestBackgroundPolls checks that the poller handles pending events immediately, but does not poll endlessly.
func TestBackgroundPolls(t *testing.T) {
	s := newSource(t)
	g, _ := newGroup(t, false, s)
	g.PollOnce() // keeps the poller from arming the source, which would handle the rest
	s.polls.Store(0)
	s.put()
	s.polled = func(n int) {
		if n > 0 {
			s.put()
		}
	}
	g.drivers[0].deadline(true)
	if n := s.polls.Load(); n != backgroundPolls {
		t.Errorf("%d polls", n)
	}
}

// TestFailure checks that a source that has failed is not polled for a while and is then polled again.
func TestFailure(t *testing.T) {
	s := newSource(t)
	g, o := newGroup(t, false, s)
	broken := errors.New("broken")
	s.fail(broken)
	o.step.Store(0)
	g.PollOnce()
	if errs := o.failures(); len(errs) != 1 || errs[0] != broken {
		t.Fatal(errs)
	}
	for _, tt := range []struct {
		now   time.Duration
		polls int32
	}{{0, 1}, {errorPause - 1, 1}, {errorPause, 2}, {errorPause, 3}} {
		o.now.Store(int64(tt.now))
		g.PollOnce()
		if n := s.polls.Load(); n != tt.polls {
			t.Errorf("at %v: %d polls, want %d", tt.now, n, tt.polls)
		}
	}
	if errs := o.failures(); len(errs) != 1 {
		t.Error(errs)
	}
	// The descriptor may be readable all the time, so it is not watched unless a caller sleeps.
	s.fail(broken)
	g.PollOnce()
	d := g.drivers[0]
	if again := d.deadline(true); again != NetworkInterval || d.armed.Load() {
		t.Errorf("again after %v, armed %v", again, d.armed.Load())
	}
}

// TestEnd checks that a source never gets an owner again after ErrSourceEnded, and that all calls return.
func TestEnd(t *testing.T) {
	for name, end := range map[string]func(g *Group){
		"poll": func(g *Group) { g.Poll(t.Context(), nil, make(chan struct{})) },
		"once": (*Group).PollOnce,
		"poller": func(g *Group) {
			if again := g.drivers[0].deadline(true); again != 0 {
				t.Errorf("again after %v", again)
			}
		},
	} {
		s := newSource(t)
		g, o := newGroup(t, false, s)
		s.fail(ErrSourceEnded)
		end(g)
		if n := s.polls.Load(); n != 1 {
			t.Errorf("%s: %d polls", name, n)
		}
		g.Poll(t.Context(), nil, make(chan struct{}))
		g.PollOnce()
		g.Watch()
		if n := s.polls.Load(); n != 1 || g.Armed() {
			t.Errorf("%s: %d polls, armed %v", name, n, g.Armed())
		}
		if errs := o.failures(); len(errs) != 0 {
			t.Errorf("%s: %v", name, errs)
		}
	}
}

// TestPostpone checks that callers that poll postpone the poller's polls, but do not do so at every poll.
func TestPostpone(t *testing.T) {
	s := newSource(t)
	g, o := newGroup(t, false, s)
	o.step.Store(0)
	now := time.Hour
	for _, tt := range []struct {
		polls     int
		after     time.Duration
		postponed bool
	}{
		{postponePolls, 0, true},
		{postponePolls, NetworkInterval/2 - 1, false},
		{postponePolls - 1, 1, false},
		{1, 0, true},
	} {
		now += tt.after
		o.now.Store(int64(now))
		ticks := o.ticks.Load()
		last := g.drivers[0].postponedAt.Load()
		for range tt.polls {
			g.PollOnce()
		}
		if got := g.drivers[0].postponedAt.Load() != last; got != tt.postponed {
			t.Errorf("%d polls %v later: postponed %v", tt.polls, tt.after, got)
		}
		if got := int(o.ticks.Load() - ticks); got != tt.polls/postponePolls && tt.polls != 1 {
			t.Errorf("%d polls: %d ticks", tt.polls, got)
		}
	}
	last := g.drivers[0].postponedAt.Load()
	o.step.Store(int64(NetworkInterval / 2))
	g.Poll(t.Context(), nil, make(chan struct{}))
	if g.drivers[0].postponedAt.Load() == last {
		t.Error("a caller that polls for long does not postpone them")
	}
}

// TestPostponeByInterval checks that callers that compute between their calls postpone the poller's polls by
// the source's interval. For a source in memory, they do not move the timer at each call.
func TestPostponeByInterval(t *testing.T) {
	for interval, want := range map[time.Duration]int{NetworkInterval: 100, MemoryInterval: 13} {
		s := newSource(t)
		g, _ := newGroup(t, false)
		if err := g.Add(s.r, s, interval); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(g.Close)
		n := 0
		for at := range 100 {
			last := g.drivers[0].postponedAt.Load()
			g.postpone(time.Hour + time.Duration(at)*(awayTime+1))
			if g.drivers[0].postponedAt.Load() != last {
				n++
			}
		}
		if n != want {
			t.Errorf("interval %v: postponed %d times by 100 calls in 100 ms, want %d", interval, n, want)
		}
	}
}

// TestPostponeForLonger checks that callers postpone the poller's polls less often the longer they have polled.
// A caller that has been away starts from the beginning.
func TestPostponeForLonger(t *testing.T) {
	s := newSource(t)
	g, _ := newGroup(t, false, s)
	times := func(from, length time.Duration) (n int) {
		for now := from; now < from+length; now += 100 * time.Microsecond {
			last := g.drivers[0].postponedAt.Load()
			g.postpone(now)
			if g.drivers[0].postponedAt.Load() != last {
				n++
			}
		}
		return n
	}
	const steady = 8 * maxPostpone
	first, long := times(time.Hour, 10*time.Millisecond), times(time.Hour+10*time.Millisecond, steady)
	later := times(time.Hour+10*time.Millisecond+steady, time.Second)
	again := times(time.Hour+10*time.Second, 10*time.Millisecond)
	if first != 10 || long <= int(2*steady/maxPostpone) || later != int(2*time.Second/maxPostpone) || again != first {
		t.Errorf("postponed %d times in 10 ms, %d in %v after that, %d in a second, and %d in 10 ms after a pause",
			first, long, steady, later, again)
	}
}

//go:build linux

package progress

import (
	"context"
	"errors"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestQuickFind checks that an event that arrives soon is found without reading the clock at every poll and
// without allocating.
func TestQuickFind(t *testing.T) {
	s := newSource(t)
	g, o := newGroup(t, false, s)
	var done atomic.Bool
	left := 0
	s.polled = func(int) {
		if left--; left == 0 {
			done.Store(true)
		}
	}
	if n := testing.AllocsPerRun(100, func() {
		left = 3
		done.Store(false)
		g.Poll(context.Background(), &done, nil)
		if left != 0 {
			t.Fatalf("%d polls are left", left)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if n, ticks := o.asked.Load(), o.ticks.Load(); n != 101/postponePolls || ticks != n {
		t.Errorf("the clock was asked %d times, %d ticks", n, ticks)
	}
	if d := g.drivers[0]; d.owned.Load() || d.visits != 101 {
		t.Errorf("owned %v, %d visits", d.owned.Load(), d.visits)
	}
	if n := pollingCallers.Load(); n != 0 {
		t.Errorf("%d still poll", n)
	}
}

// TestPollForAChannel checks that a value on the channel ends polling, just as the flag does.
func TestPollForAChannel(t *testing.T) {
	s := newSource(t)
	g, _ := newGroup(t, false, s)
	c := make(chan struct{}, 1)
	s.polled = func(int) { c <- struct{}{} }
	g.Poll(t.Context(), nil, c)
	if len(c) != 1 || s.polls.Load() != 1 {
		t.Errorf("%d values after %d polls", len(c), s.polls.Load())
	}
}

func TestBudgets(t *testing.T) {
	const (
		step   = 10 * time.Microsecond
		wakeup = 20 * time.Microsecond
		served = 20 * step
	)
	var p policy
	p.recordWait(served)
	more := p.choose(sleepCost(wakeup))
	for _, tt := range []struct {
		name           string
		oversubscribed bool
		waits          time.Duration // duration of the most recent waits, if any
		served         bool          // after served, an event arrives for another caller
		want           time.Duration // time for which it polls
		polled         time.Duration // time since the last event
	}{
		{"at first", false, 0, false, sleepCost(wakeup), sleepCost(wakeup)},
		{"short waits", false, 100 * time.Microsecond, false, 130 * time.Microsecond, 130 * time.Microsecond},
		{"long waits", false, 2 * sleepCost(wakeup), false, step, step},
		{"oversubscribed", true, time.Hour, false, oversubscribedBudget, oversubscribedBudget},
		{"served", false, 0, true, served + more.Truncate(step) + step, more.Truncate(step) + step},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSource(t)
			g, o := newGroup(t, tt.oversubscribed, s)
			g.spin.wakeup = func() time.Duration { return wakeup }
			for i := 0; tt.waits != 0 && i < 20; i++ {
				g.spin.recordWait(tt.waits)
			}
			if tt.served {
				s.polled = func(int) {
					if o.asked.Load() == int32(served/step) && tt.served {
						tt.served = false
						s.put()
					}
				}
			}
			polled := g.Poll(t.Context(), nil, make(chan struct{}))
			// The time polled begins when the clock is first read.
			if got := time.Duration(o.now.Load()) - step; got != tt.want || polled != tt.polled {
				t.Errorf("it polled for %v, %v of it in the end, want %v and %v", got, polled, tt.want, tt.polled)
			}
			if tt.served {
				t.Error("it was not served")
			}
			if o.ticks.Load() != o.asked.Load() {
				t.Errorf("%d ticks, the clock was asked %d times", o.ticks.Load(), o.asked.Load())
			}
		})
	}
}

// TestPause checks that the number of polls between two pauses adapts to the length of a pause, and is kept for
// the next Spin.
func TestPause(t *testing.T) {
	for _, tt := range []struct {
		step time.Duration
		want int
	}{{pause / 2, maxPolls}, {3 * pause, 1}, {pause, firstPolls}} {
		var p SpinPolicy
		p.Init(false)
		var s Spin
		if !p.Begin(&s) {
			t.Fatal("there is no core")
		}
		for now, i := tt.step, 0; i < 40; i++ {
			s.eventFound = true // makes it continue to poll
			if !s.Continue(now) {
				t.Fatal("the spin ended")
			}
			now += tt.step
		}
		s.End()
		if s.pollsPerPause != tt.want {
			t.Errorf("a clock asked every %v: %d polls, want %d", tt.step, s.pollsPerPause, tt.want)
		}
		if !p.Begin(&s) {
			t.Fatal("there is no core any more")
		}
		s.End()
		if s.pollsPerPause != tt.want {
			t.Errorf("a clock asked every %v: the next search begins with %d polls, want %d", tt.step, s.pollsPerPause, tt.want)
		}
	}
}

// TestTimeOfOthersDoesNotCount checks that a time slice of another process counts as one poll, regardless of
// its length.
func TestTimeOfOthersDoesNotCount(t *testing.T) {
	for _, tt := range []struct {
		slice time.Duration
		want  int // number of polls
	}{{maxPollGap / 2, 200}, {maxPollGap, 100}, {3 * time.Millisecond, 100}} {
		var p SpinPolicy
		p.Init(true)
		var s Spin
		if !p.Begin(&s) {
			t.Fatal("there is no core")
		}
		now, polls := time.Second, 0
		for s.Continue(now) {
			now += tt.slice
			polls++
		}
		if polled := s.End(); polls != tt.want || polled != oversubscribedBudget {
			t.Errorf("a core every %v: %d polls, charged for %v, want %d and %v", tt.slice, polls, polled, tt.want,
				oversubscribedBudget)
		}
	}
}

func TestNoPolling(t *testing.T) {
	ended, end := context.WithCancel(context.Background())
	end()
	for _, tt := range []struct {
		name           string
		ctx            context.Context
		oversubscribed bool
		alone          bool
		others         int32
		want           bool
	}{
		{"its context is done", ended, false, false, 0, false},
		{"a core is left", context.Background(), false, false, cores() - 1, true},
		{"no core is left", context.Background(), false, false, cores(), false},
		{"nothing polls on an oversubscribed host", context.Background(), true, false, 0, true},
		{"one polls on an oversubscribed host", context.Background(), true, false, oversubscribedPollers, false},
		{"a core is left on an oversubscribed host", context.Background(), true, true, cores() - 1, true},
		{"no core is left on an oversubscribed host", context.Background(), true, true, cores(), false},
	} {
		s := newSource(t)
		g, _ := newGroup(t, tt.oversubscribed, s)
		if tt.alone {
			g.PollAlone(nil)
		}
		pollingCallers.Add(tt.others)
		g.Poll(tt.ctx, nil, make(chan struct{}))
		pollingCallers.Add(-tt.others)
		if got := s.polls.Load() > 0; got != tt.want {
			t.Errorf("%s: it polled: %v", tt.name, got)
		}
	}
	if n := pollingCallers.Load(); n != 0 {
		t.Errorf("%d still poll", n)
	}
}

// TestDrain checks that Drain handles all pending events, stops after a limited number of polls in a flood, and
// does not poll sources that have an owner.
func TestDrain(t *testing.T) {
	s, taken, flood := newSource(t), newSource(t), newSource(t)
	g, _ := newGroup(t, false, s, taken, flood)
	if !g.drivers[1].acquire() {
		t.Fatal("the source is owned")
	}
	s.put()
	flood.put()
	flood.polled = func(int) { flood.put() }
	g.Drain()
	for i, want := range []int32{2, 0, backgroundPolls} {
		if n := []*fakeSource{s, taken, flood}[i].polls.Load(); n != want {
			t.Errorf("source %d: %d polls, want %d", i, n, want)
		}
	}
	for _, i := range []int{0, 2} {
		if d := g.drivers[i]; d.visits != 0 || !d.acquire() {
			t.Errorf("source %d has been visited, or is still owned", i)
		}
	}
}

// TestContextEndsWhilePolling checks that a polling caller notices the end of its context when it reads the
// clock.
func TestContextEndsWhilePolling(t *testing.T) {
	s := newSource(t)
	g, o := newGroup(t, true, s)
	ctx, end := context.WithCancel(context.Background())
	s.polled = func(int) { end() }
	g.Poll(ctx, nil, make(chan struct{}))
	if n := o.asked.Load(); n != 1 {
		t.Errorf("the clock was asked %d times", n)
	}
	cause := errors.New("enough")
	gone, stop := context.WithCancelCause(context.Background())
	stop(cause)
	if err := g.Await(gone, make(chan struct{})); !errors.Is(err, cause) || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if n := g.Waiting.Load(); n != 0 {
		t.Errorf("%d wait", n)
	}
}

// TestOwnership checks that only one caller at a time polls a source, and that this does not delay the other
// sources of the group.
func TestOwnership(t *testing.T) {
	a, b := newSource(t), newSource(t)
	g, _ := newGroup(t, false, a, b)
	if !g.drivers[0].acquire() {
		t.Fatal("the source is owned")
	}
	g.PollOnce()
	if a.polls.Load() != 0 || b.polls.Load() != 1 {
		t.Errorf("%d and %d polls", a.polls.Load(), b.polls.Load())
	}
	g.Poll(t.Context(), nil, make(chan struct{}))
	if a.polls.Load() != 0 || b.polls.Load() < 2 {
		t.Errorf("%d and %d polls", a.polls.Load(), b.polls.Load())
	}
	if !g.drivers[1].acquire() {
		t.Fatal("the source is still owned")
	}
	if d := g.drivers[0]; d.visits != 0 {
		t.Error("a caller that did not own the source counts as a visitor")
	}
	before := b.polls.Load()
	g.Poll(t.Context(), nil, make(chan struct{})) // returns at once: there is nothing to poll
	if n := b.polls.Load(); n != before {
		t.Errorf("%d polls without ownership", n-before)
	}
}

// TestAwaitIsWoken checks that a sleeping caller is woken up by an event.
func TestAwaitIsWoken(t *testing.T) {
	s := newSource(t)
	g, o := newGroup(t, false, s)
	c := make(chan struct{}, 1)
	s.polled = func(n int) {
		if n > 0 {
			c <- struct{}{}
		}
	}
	for range 20 {
		woken := make(chan error)
		go func() { woken <- g.Await(context.Background(), c) }()
		for !g.Armed() {
			runtime.Gosched()
		}
		s.put()
		if err := <-woken; err != nil {
			t.Fatal(err)
		}
	}
	if o.armed.Load() == 0 {
		t.Error("the owner was not notified")
	}
	if g.Waiting.Load() != 0 || sleepingCallers.Load() != 0 {
		t.Errorf("%d wait, %d sleep", g.Waiting.Load(), sleepingCallers.Load())
	}
}

// TestPollForSleepers checks that a caller that polls also polls for sleeping callers if the poller is blocked.
func TestPollForSleepers(t *testing.T) {
	for _, oversubscribed := range []bool{false, true} {
		held, release := make(chan struct{}), make(chan struct{})
		holder := newSource(t)
		holder.put()
		w, err := NewWatch(holder.r, func(bool) time.Duration { close(held); <-release; return 0 })
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Arm(); err != nil {
			t.Fatal(err)
		}
		<-held // from now on, the poller's goroutine is blocked

		sleeper, polled := newSource(t), newSource(t)
		a, _ := newGroup(t, false, sleeper)
		b, _ := newGroup(t, oversubscribed, polled)
		woken := make(chan struct{}, 1)
		sleeper.polled = func(n int) {
			if n > 0 {
				woken <- struct{}{}
			}
		}
		a.Waiting.Add(1)
		slept := make(chan error)
		go func() { slept <- a.Sleep(context.Background(), woken, 0) }()
		for sleepingCallers.Load() == 0 {
			runtime.Gosched()
		}
		var done atomic.Bool
		sleeper.put()
		go func() {
			if err := <-slept; err != nil {
				t.Error(err)
			}
			done.Store(true)
		}()
		for !done.Load() { // a budget on the fake clock is short
			b.Poll(t.Context(), &done, nil)
		}
		if n := sleeper.polls.Load(); n == 0 {
			t.Error("the source was not polled")
		}
		close(release)
		w.Remove()
	}
}

// TestManyWaiters checks that each of many waiters is served, no matter which of them owns the source when an
// event arrives.
func TestManyWaiters(t *testing.T) {
	const waiters, each = 8, 300
	sources := []*fakeSource{newSource(t), newSource(t)}
	var g Group
	g.Init(realOwner{time.Now()}, false)
	tokens := make(chan chan struct{}, waiters*each)
	for _, s := range sources {
		s.polled = func(n int) {
			for range n {
				<-tokens <- struct{}{}
			}
		}
		if err := g.Add(s.r, s, NetworkInterval); err != nil {
			t.Fatal(err)
		}
	}
	g.Watch()
	var all sync.WaitGroup
	for i := range waiters {
		all.Go(func() {
			c := make(chan struct{}, 1)
			for n := range each {
				tokens <- c
				go sources[(i+n)%2].put()
				if n%3 == 0 {
					g.PollOnce()
				}
				if err := g.Await(context.Background(), c); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	g.Close()
	if g.Waiting.Load() != 0 || pollingCallers.Load() != 0 || sleepingCallers.Load() != 0 {
		t.Errorf("%d wait, %d poll, %d sleep", g.Waiting.Load(), pollingCallers.Load(), sleepingCallers.Load())
	}
}

type realOwner struct{ begun time.Time }

func (o realOwner) Now() time.Duration { return time.Since(o.begun) }
func (realOwner) Tick(time.Duration)   {}
func (realOwner) Calls() uint32        { return 0 }
func (realOwner) Armed()               {}
func (realOwner) Failed(error)         {}

func TestAddRefusesWhatCannotBeWatched(t *testing.T) {
	s := newSource(t)
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var g Group
	g.Init(&fakeOwner{}, false)
	if err := g.Add(int(f.Fd()), s, NetworkInterval); err == nil || g.Len() != 0 {
		t.Errorf("%v, %d sources", err, g.Len())
	}
	g.Poll(t.Context(), nil, make(chan struct{})) // there is nothing to poll
	if s.polls.Load() != 0 {
		t.Error("it was polled")
	}
}

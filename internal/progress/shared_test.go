//go:build linux

package progress

import (
	"sync/atomic"
	"testing"
	"time"
)

// visits counts its visits and calls then with the count. It finds something at the visit with the number
// finds.
type visits struct {
	n     atomic.Int32
	then  func(n int32)
	finds int32
}

func (v *visits) Visit() bool {
	n := v.n.Add(1)
	if v.then != nil {
		v.then(n)
	}
	return n == v.finds
}

// newClock returns a clock that advances by step each time it is read.
func newClock(step time.Duration) func() time.Duration {
	var now atomic.Int64
	return func() time.Duration { return time.Duration(now.Add(int64(step))) }
}

// TestCallersPollShared checks that a caller that waits for something else polls all Shareds, except the ones that have
// been unshared.
func TestCallersPollShared(t *testing.T) {
	g, _ := newGroup(t, false, newSource(t))
	v, w := new(visits), new(visits)
	RegisterShared(v)
	RegisterShared(w)
	defer UnregisterShared(w)
	done := new(atomic.Bool)
	v.then = func(n int32) { done.Store(n == 3) }
	g.Poll(t.Context(), done, nil)
	if v.n.Load() != 3 || w.n.Load() != 3 {
		t.Errorf("%d and %d visits", v.n.Load(), w.n.Load())
	}
	UnregisterShared(v)
	g.Poll(t.Context(), done, nil)
	if v.n.Load() != 3 || w.n.Load() != 4 {
		t.Errorf("%d and %d visits after Unshare", v.n.Load(), w.n.Load())
	}
}

// TestVisitAgain checks that, when one Shared finds an event, those before it are polled again.
func TestVisitAgain(t *testing.T) {
	for _, tt := range []struct {
		finder int // -1: none
		want   [3]int32
	}{
		{-1, [3]int32{1, 1, 1}},
		{0, [3]int32{1, 1, 1}},
		{1, [3]int32{2, 1, 1}},
		{2, [3]int32{2, 2, 1}},
	} {
		var all [3]visits
		for i := range all {
			RegisterShared(&all[i])
		}
		if tt.finder >= 0 {
			all[tt.finder].finds = 1
		}
		found := visitShared()
		for i := range all {
			UnregisterShared(&all[i])
			if n := all[i].n.Load(); n != tt.want[i] {
				t.Errorf("number %d finds something: number %d was polled %d times, want %d", tt.finder, i, n,
					tt.want[i])
			}
		}
		if found != (tt.finder >= 0) {
			t.Errorf("number %d finds something: visit reports %v", tt.finder, found)
		}
	}
}

// TestPollShared checks that PollShared returns when c has a value, and when the budget is used up.
func TestPollShared(t *testing.T) {
	for _, oversubscribed := range []bool{false, true} {
		var p SpinPolicy
		p.Init(oversubscribed)
		v, c := new(visits), make(chan struct{}, 1)
		RegisterShared(v)
		v.then = func(n int32) {
			if n == 5 {
				c <- struct{}{}
			}
		}
		if _, ok := p.PollShared(newClock(0), c); !ok || v.n.Load() != 5 {
			t.Errorf("%d visits", v.n.Load())
		}
		<-c
		v.then = nil
		if _, ok := p.PollShared(newClock(time.Microsecond), c); !ok || v.n.Load() == 5 {
			t.Error("it does not poll until the budget is used up")
		}
		if pollingCallers.Load() != 0 || background.Load() {
			t.Error("it is still counted")
		}
		UnregisterShared(v)
	}
}

// TestPollSharedGivesWay checks that PollShared does not poll on an oversubscribed host while another caller
// polls.
func TestPollSharedGivesWay(t *testing.T) {
	var p SpinPolicy
	p.Init(true)
	v := new(visits)
	RegisterShared(v)
	defer UnregisterShared(v)
	pollingCallers.Add(1)
	if _, ok := p.PollShared(newClock(0), nil); ok || v.n.Load() != 0 {
		t.Error("it polls while another caller does")
	}
	pollingCallers.Add(-1)
	v.then = func(n int32) {
		if _, ok := p.PollShared(newClock(0), nil); ok {
			t.Error("two poll")
		}
		if n == 3 {
			pollingCallers.Add(1)
		}
	}
	if _, ok := p.PollShared(newClock(0), nil); ok || v.n.Load() != 3 {
		t.Errorf("%d visits", v.n.Load())
	}
	pollingCallers.Add(-1)
}

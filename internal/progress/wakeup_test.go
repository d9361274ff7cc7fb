//go:build linux

package progress

import (
	"context"
	"runtime"
	"testing"
	"time"
)

func TestMedianWakeup(t *testing.T) {
	var w wakeups
	if w.cost() != unknownWakeup {
		t.Errorf("nothing was measured: %v", w.cost())
	}
	for i, tt := range []struct{ measured, want time.Duration }{
		{20 * time.Microsecond, 20 * time.Microsecond},
		{time.Hour, maxWakeup},
		{30 * time.Microsecond, 30 * time.Microsecond},
		{0, 30 * time.Microsecond},
		{0, 20 * time.Microsecond},
		{0, 20 * time.Microsecond},
		{0, minWakeup},
		{time.Hour, 20 * time.Microsecond},
		{time.Hour, 20 * time.Microsecond},
		{40 * time.Microsecond, 30 * time.Microsecond}, // the first measurement is forgotten
	} {
		if more := w.add(tt.measured); more != (i+1 < wakeupSamples) || w.cost() != tt.want {
			t.Errorf("measurement %d: %v, want %v; more: %v", i, w.cost(), tt.want, more)
		}
	}
}

// TestWakeupsAreMeasured checks that the cost of a wake-up is measured repeatedly once it has been used.
func TestWakeupsAreMeasured(t *testing.T) {
	newGroup(t, false, newSource(t)) // creates the poller
	w := processWakeups()
	measured := func() int {
		w.watch.callMu.Lock()
		defer w.watch.callMu.Unlock()
		return w.n
	}
	for end := time.Now().Add(20 * time.Second); measured() < wakeupSamples+2; runtime.Gosched() {
		if measureWakeups(); time.Now().After(end) {
			t.Fatalf("%d measurements", measured())
		}
	}
	if c := wakeupCost(); c < minWakeup || c > maxWakeup {
		t.Errorf("a wake-up costs %v", c)
	}
}

// TestWaitsAreCounted checks that waits are recorded both if they end while the caller polls and if they end
// after it has slept.
func TestWaitsAreCounted(t *testing.T) {
	const (
		wakeup = 20 * time.Microsecond
		wait   = 100 * time.Microsecond
	)
	policyOf := func() *SpinPolicy {
		p := new(SpinPolicy)
		p.Init(false)
		p.wakeup = func() time.Duration { return wakeup }
		return p
	}
	wants := func(name string, p *SpinPolicy, d time.Duration) {
		t.Helper()
		n := 0.
		for _, k := range p.policy.counts {
			n += k
		}
		if c := p.policy.counts[classOf(d)]; n == 0 || c != n {
			t.Errorf("%s: %v of %v waits are of the class of %v", name, c, n, d)
		}
	}

	p := policyOf()
	var s Spin
	if !p.Begin(&s) || !s.Continue(1) || !s.Continue(1+wait) || s.End() != 0 {
		t.Fatal("it does not poll")
	}
	wants("polled", p, wait)

	p = policyOf()
	if !p.Begin(&s) || !s.Continue(1) || s.Continue(1+sleepCost(wakeup)) {
		t.Fatal("it polls for longer than its budget")
	}
	polled := s.End()
	if polled != sleepCost(wakeup) {
		t.Fatalf("it has polled for %v", polled)
	}
	p.wakeup = func() time.Duration { return time.Hour } // longer than the caller sleeps
	c := make(chan struct{}, 1)
	c <- struct{}{}
	if err := p.Sleep(context.Background(), c, polled); err != nil {
		t.Fatal(err)
	}
	wants("slept", p, polled)

	p = policyOf()
	c <- struct{}{}
	if err := p.Sleep(context.Background(), c, 0); err != nil || p.policy.recent != 0 {
		t.Error("a wait that was not polled for is counted")
	}
}

package extended

import (
	"math"
	"testing"
	"time"
)

// near reports whether two windows differ by less than a thousandth.
func near(a, b float64) bool { return math.Abs(a-b) < 0.001*math.Max(math.Abs(b), 1) }

// lostAt returns a congestion that has been in congestion avoidance since a loss at the given window.
func lostAt(packets float64) *congestion {
	var w congestion
	w.reset()
	w.window = packets
	w.onLost(1, 2)
	return &w
}

// The window function of RFC 9438 is W_cubic(t) = C(t−K)³ + W_max, K = ∛((W_max−cwnd)/C), C = 0.4, β = 0.7. The
// values were computed by hand.
func TestCubicWindowFunction(t *testing.T) {
	for _, x := range []struct {
		lostAt, k float64
		at        time.Duration
		want      float64
	}{
		{100, 4.217163, 0, 70},
		{100, 4.217163, time.Second, 86.6808},
		{100, 4.217163, 4 * time.Second, 99.9959},
		{100, 4.217163, 4217163 * time.Microsecond, 100},
		{100, 4.217163, 6 * time.Second, 102.2665},
		{100, 4.217163, 10 * time.Second, 177.3540},
		{1000, 9.085603, 0, 700},
		{1000, 9.085603, 5 * time.Second, 972.7210},
		{1000, 9.085603, 20 * time.Second, 1520.0669},
		{10000, 19.574338, 10 * time.Second, 9648.9360},
	} {
		w := lostAt(x.lostAt)
		if got := w.cubic(x.at); !near(w.k, x.k) || !near(got, x.want) {
			t.Errorf("a loss at %v: K is %.6f, want %.6f; after %v the window is %.4f, want %.4f", x.lostAt, w.k, x.k,
				x.at, got, x.want)
		}
	}
}

// roundTrips acknowledges n whole windows, one per round trip.
func (w *congestion) roundTrips(n int, trip time.Duration) {
	for range n {
		w.onAcked(w.lastAckAt+trip, w.packets, 1000, trip, maxWindow)
	}
}

// The window follows the function where it exceeds Reno's window, and Reno's window elsewhere (section 4.3).
func TestRegionsOfCubic(t *testing.T) {
	for _, x := range []struct {
		what   string
		lostAt float64
		trip   time.Duration
		trips  int
		low    float64
		high   float64
	}{
		// W_cubic(4 s) is 99.996: concave, up to the window at the loss.
		{"concave", 100, 100 * time.Millisecond, 40, 98.5, 100.1},
		// W_cubic(10 s) is 177.35, and the target is W_cubic one round trip later.
		{"convex", 100, 100 * time.Millisecond, 100, 177, 182},
		// Reno grows by α = 9/17 per round trip from 70: after 50 it has 96.5, W_cubic(50 ms) has 71.0.
		{"Reno-friendly", 100, time.Millisecond, 50, 96, 97},
		// From the window at the loss on, it grows by 1: 70 + 57·9/17 = 100.2 and 43 more.
		{"Reno-friendly, beyond the loss", 100, time.Millisecond, 100, 142, 144},
	} {
		w := lostAt(x.lostAt)
		w.roundTrips(x.trips, x.trip)
		if w.window < x.low || w.window > x.high || w.packets != int(w.window) {
			t.Errorf("%s: the window is %.2f, want %v to %v", x.what, w.window, x.low, x.high)
		}
	}
}

// No acknowledgement makes the window grow by more than half (section 4.4).
func TestTargetIsBounded(t *testing.T) {
	w := lostAt(100)
	w.onAcked(time.Hour, w.packets, 100, time.Second, maxWindow)
	if w.window > 1.5*70+1 {
		t.Errorf("the window is %.1f", w.window)
	}
}

// A flow whose window has not grown to the window at the previous loss has a lower target (section 4.7).
func TestFastConvergence(t *testing.T) {
	w := lostAt(100)
	w.progress, w.recoveryStart = true, 0
	w.window = 80
	w.onLost(10, 20)
	if !near(w.origin, 80*0.85) || !near(w.window, 56) {
		t.Errorf("W_max is %.2f and the window %.2f, want 68 and 56", w.origin, w.window)
	}
	w.progress, w.window = true, 90
	w.onLost(30, 40)
	if !near(w.origin, 90) || !near(w.window, 63) {
		t.Errorf("W_max is %.2f and the window %.2f, want 90 and 63", w.origin, w.window)
	}
}

// The window is reduced once for all losses in a round trip, and not again before an acknowledgement (E28).
func TestWindowIsReducedOnce(t *testing.T) {
	var w congestion
	w.reset()
	w.onAcked(0, 48, 1, 0, maxWindow)
	w.onUnusedAck(0)
	steps := []struct {
		what        string
		order, next uint64
		acked       int
		want        int
	}{
		{"a loss", 10, 65, 0, 44},
		{"another one of that round trip", 20, 66, 1, 44},
		{"a retransmission of it, after something was acknowledged", 65, 70, 0, 31},
		{"another, before", 71, 72, 0, 31},
		{"another, after", 72, 73, 1, 21},
		{"", 80, 81, 1, 15}, {"", 90, 91, 1, 10}, {"", 100, 101, 1, 7}, {"", 110, 111, 1, 5}, {"", 120, 121, 1, 4},
		{"never below", 130, 131, 1, 4},
	}
	for _, x := range steps {
		if x.acked > 0 {
			w.onUnusedAck(0)
		}
		if w.onLost(x.order, x.next); w.packets != x.want {
			t.Errorf("%s: the window is %d, want %d", x.what, w.packets, x.want)
		}
	}
	before := w.window
	w.onAcked(time.Second, 4, 130, time.Second, maxWindow)
	if w.window != before {
		t.Errorf("packets sent before the reduction enlarge the window to %v", w.window)
	}
	w.roundTrips(10000, time.Second)
	if w.packets != maxWindow {
		t.Errorf("it grows to %d", w.packets)
	}
}

// The reduction is undone when all packets declared lost turn out to be late, and not before (section 4.9).
func TestReductionIsUndone(t *testing.T) {
	w := lostAt(100)
	w.previous.elapsed = 3 * time.Second
	before := w.previous
	w.onLost(0, 3) // another loss in the same round trip
	if !w.onLate(0, false) || w.packets != 70 {
		t.Errorf("after one of two: %d", w.packets)
	}
	if w.onLate(1, true) || w.packets != 70 {
		t.Errorf("a retransmission of an earlier loss: %d", w.packets)
	}
	if !w.onLate(5, true) || w.packets != 100 || w.curve != before {
		t.Errorf("after both: %+v", w)
	}
	if w.onLost(3, 6); w.packets != 70 {
		t.Errorf("a loss after that: %d", w.packets)
	}
	if w.confirmReduction(); w.onLate(7, true) || w.packets != 70 {
		t.Errorf("one that stands: %d", w.packets)
	}
}

// The window does not grow while it is not used, and this time does not count later.
func TestUnusedWindowDoesNotGrow(t *testing.T) {
	var slow congestion
	slow.reset()
	slow.onUnusedAck(time.Second)
	if slow.packets != initialWindow {
		t.Errorf("in slow start it grows to %d", slow.packets)
	}
	w := lostAt(100)
	w.roundTrips(10, 100*time.Millisecond)
	w.onUnusedAck(w.lastAckAt + time.Hour)
	w.roundTrips(30, 100*time.Millisecond)
	if w.window > 100.1 || w.window < 98.5 {
		t.Errorf("after 4 s of use and an hour without, the window is %.2f", w.window)
	}
}

// A pause halves the window per timeout, down to the initial window, and slow start restores three quarters of it.
func TestIdleWindow(t *testing.T) {
	for _, x := range []struct {
		pause           time.Duration
		want, threshold float64
	}{{199 * time.Millisecond, 70, 70}, {200 * time.Millisecond, 35, 70}, {400 * time.Millisecond, 17.5, 70},
		{time.Hour, initialWindow, 70}} {
		w := lostAt(100)
		w.afterIdle(x.pause, 200*time.Millisecond)
		if w.window != x.want || w.threshold != x.threshold || w.packets != int(x.want) {
			t.Errorf("after %v the window is %v and the threshold %v, want %v and %v", x.pause, w.window, w.threshold,
				x.want, x.threshold)
		}
	}
	w := lostAt(10)
	if w.afterIdle(time.Hour, time.Second); w.packets != 7 {
		t.Errorf("a small window becomes %d", w.packets)
	}
}

// Persistent congestion leaves the minimum window, from which slow start grows it to the threshold.
func TestCollapse(t *testing.T) {
	w := lostAt(100)
	w.collapse()
	if w.packets != minWindow || !w.slowStart() {
		t.Fatalf("the window is %d, slow start %v", w.packets, w.slowStart())
	}
	w.roundTrips(5, 100*time.Millisecond)
	if w.slowStart() || w.window < 70 || w.window > 130 {
		t.Errorf("after five round trips it is %.1f, slow start %v", w.window, w.slowStart())
	}
}

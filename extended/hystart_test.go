package extended

import (
	"testing"
	"time"
)

// round simulates a round of RFC 9406: eight round trips, of packets with orders from first on.
func (h *hyStart) round(first uint64, trips ...time.Duration) (done bool) {
	for i := range hyStartSamples {
		done = h.addSample(trips[min(i, len(trips)-1)], first+uint64(i), first+hyStartSamples)
	}
	return done
}

// Slow start becomes slower when the minimum round trip of a round exceeds the last one by an eighth, but by at least 4
// ms and at most 16 ms. It resumes if that was not a queue, and ends after five slower rounds.
func TestHyStart(t *testing.T) {
	const ms = time.Millisecond
	for _, x := range []struct {
		trip, longer time.Duration
		slower       bool
	}{
		{10 * ms, 14*ms - 1, false}, {10 * ms, 14 * ms, true},
		{80 * ms, 90*ms - 1, false}, {80 * ms, 90 * ms, true},
		{800 * ms, 816*ms - 1, false}, {800 * ms, 816 * ms, true},
	} {
		var h hyStart
		h.round(0, x.trip)
		h.round(100, x.longer)
		if got := h.growth(8) == 2; got != x.slower {
			t.Errorf("%v after %v: slower %v", x.longer, x.trip, got)
		}
		if !x.slower {
			continue
		}
		if h.round(200, x.trip); h.growth(8) != 8 {
			t.Errorf("%v again: it stays slower", x.trip)
		}
		h.round(300, x.longer)
		for n := range uint64(hyStartRounds) {
			if done := h.round(400+100*n, x.longer+ms); done != (n == hyStartRounds-1) {
				t.Errorf("round %d: done %v", n, done)
			}
		}
	}
}

// A single long round trip is not a queue.
func TestHyStartTakesTheLeast(t *testing.T) {
	var h hyStart
	h.round(0, 10*time.Millisecond)
	if h.round(100, 50*time.Millisecond, 10*time.Millisecond); h.growth(4) != 4 {
		t.Error("it is slower")
	}
}

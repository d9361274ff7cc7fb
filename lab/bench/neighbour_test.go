package bench

import (
	"context"
	"strings"
	"testing"
	"time"
)

// TestBursts checks that bursts last 1 to 20 ms and take a fifth of the time, and that their times depend only on the
// seed and the processor.
func TestBursts(t *testing.T) {
	b, same, other, beside := newBursts(7, 0), newBursts(7, 0), newBursts(8, 0), newBursts(7, 1)
	var end, used time.Duration
	var different, apart bool
	for range 10_000 {
		start, length := b.next()
		if start < end || length < minBurst || length > maxBurst {
			t.Fatalf("a burst at %v, for %v, after one that ends at %v", start, length, end)
		}
		end, used = start+length, used+length
		if again, l := same.next(); again != start || l != length {
			t.Fatalf("%v, %v instead of %v, %v", again, l, start, length)
		}
		s, _ := other.next()
		different = different || s != start
		s, _ = beside.next()
		apart = apart || s != start
	}
	if share := float64(used) / float64(end); share < 0.19 || share > 0.21 || !different || !apart {
		t.Errorf("%v of the time; %v, %v", share, different, apart)
	}
}

func TestNeighbour(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := runNeighbour(ctx, "1"); err != nil {
		t.Error(err)
	}
	if err := runNeighbour(ctx, "x"); err == nil || !strings.Contains(err.Error(), "the seed of the neighbour") {
		t.Error(err)
	}
}

// TestDisturb measures with a neighbour and without it, and checks that the report shows both.
func TestDisturb(t *testing.T) {
	r, progress := quick(t, Options{Workloads: []string{"ring", "idle"}, Only: []string{"extended-udp"}, Disturb: true,
		Rounds: 2})
	if strings.Count(progress, "ring, extended-udp, disturbed\n") != 2 ||
		strings.Contains(progress, "idle, extended-udp, disturbed") {
		t.Error(progress)
	}
	s := r.result("ring").side("extended-udp")
	if s.Disturbed == nil || len(s.Disturbed.Rounds) != 2 || len(s.Rounds) != 2 || s.Disturbed.Median[0].P50 <= 0 ||
		r.result("idle").side("extended-udp").Disturbed != nil {
		t.Fatalf("%+v", s)
	}
	s.Disturbed.Rounds = [][]Point{{{N: 2, P50: 30, P99: 40, P999: 50}, {N: 4, P50: 9}}}
	s.Rounds = [][]Point{{{N: 2, P50: 20}, {N: 4, P50: 9}}}
	r.computeDerived()
	want := "how many times the p50 without it: over the network\nranks              extended-udp\n    2  30.0 / " +
		"40.0 / 50.0 ×1.50\n    4                9.00 ×1.00\n"
	if text := printed(r); !strings.Contains(text, want) {
		t.Errorf("there is no %q in\n%s", want, text)
	}
	s.Disturbed = &Figures{}
	if r.computeDerived(); s.Disturbed != nil {
		t.Error("figures of nothing")
	}
}

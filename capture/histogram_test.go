package capture

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestHistogramQuantiles(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{1, 2, 3, 100, 10_000} {
		var h histogram
		var all []time.Duration
		for range n {
			d := time.Duration(rng.ExpFloat64() * float64(time.Millisecond))
			all = append(all, d)
			h.add(d)
		}
		slices.Sort(all)
		for _, q := range []float64{0.01, 0.5, 0.9, 0.99, 1} {
			i := min(max(int(q*float64(n)+0.999999)-1, 0), n-1)
			got, want := h.quantile(q), all[i]
			if got < want || float64(got) > float64(want)*1.04+1 {
				t.Errorf("n=%d q=%v: %v, exactly %v", n, q, got, want)
			}
		}
		if h.max != all[n-1] || h.count != uint64(n) {
			t.Errorf("n=%d: max %v of %d", n, h.max, h.count)
		}
	}
	var empty histogram
	if empty.quantile(0.5) != 0 {
		t.Error("an empty histogram has a median")
	}
}

// TestQuantiles: for up to a million messages, quantiles are measured values (nearest rank). For more messages they are
// marked as approximate.
func TestQuantiles(t *testing.T) {
	a := NewAnalysis("test", AnalysisOptions{})
	add := func(ms int) {
		total := float64(ms) / 1e3
		a.addMessage(&Message{Src: 0, Dst: ms % 2, Phases: Phases{Total: &total}})
	}
	for ms := 100; ms > 0; ms-- {
		add(ms)
	}
	want := Quantiles{Count: 100, P50: .05, P90: .09, P99: .099, Max: .1}
	if got := a.Report().Summary.All.Total; got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	a.all.Messages = exactMessages
	add(1000)
	r := a.Report()
	if got := r.Summary.All.Total; !got.Approximate || got.Count != 101 || got.P50 < .05 || got.P50 > .053 ||
		got.Max != 1 {
		t.Errorf("%+v", got)
	}
	for _, p := range r.Summary.Pairs {
		if !p.Total.Approximate || p.RequestToClear.Count != 0 {
			t.Errorf("%+v", p)
		}
	}
	text, err := json.Marshal(Quantiles{})
	if err != nil || string(text) != `{"count":0,"p50_seconds":null,"p90_seconds":null,"p99_seconds":null,"max_seconds":null}` {
		t.Errorf("%s, %v", text, err)
	}
}

func TestHistogramBuckets(t *testing.T) {
	for d := time.Duration(0); d < 1<<20; d = d*9/8 + 1 {
		o, b := bucket(d)
		if up := edge(o, b); up < d || float64(up) > float64(d)*(1+1.0/perOctave)+1 {
			t.Fatalf("%d is in a bucket that ends at %d", d, up)
		}
	}
	var h histogram
	h.add(-time.Second) // clocks go back
	h.add(1<<63 - 1)
	if h.quantile(1) != 1<<63-1 {
		t.Error("the longest duration does not fit")
	}
}

package capture

import (
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

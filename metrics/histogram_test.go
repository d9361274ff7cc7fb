package metrics

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"

	"github.com/zrlmpi/zrlmpid/metrics/phases"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// times returns durations in nanoseconds, of all magnitudes up to months, including some next to the bounds of
// buckets.
func times(rng *rand.Rand, n int) []uint64 {
	ns := []uint64{0, 0, 1, 2, 3}
	for _, bound := range classicBounds {
		ns = append(ns, uint64(bound*1e9)-1, uint64(bound*1e9), uint64(bound*1e9)+1)
	}
	for i := -29 * phases.PerOctave; i < 10*phases.PerOctave; i++ {
		bound := uint64(math.Exp2(float64(i)/phases.PerOctave) * 1e9)
		ns = append(ns, max(bound, 1)-1, bound, bound+1)
	}
	for range n {
		ns = append(ns, uint64(rng.Int64()>>(11+rng.IntN(52))))
	}
	return ns
}

// TestHistogramsAreTheLibrarys checks that our histogram and the library's histogram are equal for the same
// times.
func TestHistogramsAreTheLibrarys(t *testing.T) {
	for _, n := range []int{0, 1, 10, 10_000} {
		rng := rand.New(rand.NewPCG(1, uint64(n)))
		ref := prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "x", NativeHistogramBucketFactor: 1.1, Buckets: classicBounds[:],
		})
		counted := new(phases.Histogram)
		list := times(rng, n)
		if n < 1000 {
			list = list[len(list)-n:] // sparse
		}
		for _, ns := range list {
			ref.Observe(float64(ns) / 1e9)
			counted.Add(ns)
		}
		var m dto.Metric
		if err := ref.Write(&m); err != nil {
			t.Fatal(err)
		}
		want := m.Histogram
		got := (&scrape{native: true}).phaseHistogram(counted)
		got.CreatedTimestamp = want.CreatedTimestamp
		if want.GetSchema() != phases.Schema {
			t.Fatalf("the reference has schema %d", want.GetSchema())
		}
		if a, b := got.GetSampleSum(), want.GetSampleSum(); math.Abs(a-b) > 1e-9*b {
			t.Errorf("%d times: sum %g, want %g", n, a, b)
		}
		got.SampleSum, want.SampleSum = nil, nil
		if !proto.Equal(got, want) {
			t.Errorf("%d times: got\n%v\nwant\n%v", n, got, want)
		}
		if !slices.Equal(nativeHistogram(counted).PositiveDelta, got.PositiveDelta) {
			t.Errorf("%d times: the peer's histogram differs", n)
		}
	}
}

// quantile computes histogram_quantile of a native histogram in the same way as Prometheus, but without
// interpolation: it returns the bounds of the bucket that contains the quantile.
func quantile(h *dto.Histogram, q float64) (low, high float64) {
	rank := q * float64(h.GetSampleCount())
	at := float64(h.GetZeroCount())
	if at >= rank {
		return 0, h.GetZeroThreshold()
	}
	factor := math.Exp2(math.Exp2(-float64(h.GetSchema())))
	key, count, i := int32(0), int64(0), 0
	for _, s := range h.PositiveSpan {
		key += s.GetOffset()
		for range s.GetLength() {
			count += h.PositiveDelta[i]
			i++
			if at += float64(count); at >= rank {
				return math.Pow(factor, float64(key-1)), math.Pow(factor, float64(key))
			}
			key++
		}
	}
	return math.Inf(1), math.Inf(1)
}

// TestQuantiles checks that the quantiles that Prometheus computes from a native histogram are accurate to
// within a bucket.
func TestQuantiles(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	var h phases.Histogram
	var list []uint64
	for range 20_000 {
		ns := uint64(math.Exp(rng.NormFloat64()*1.5+10)) + 1 // around 22 µs
		list = append(list, ns)
		h.Add(ns)
	}
	slices.SortFunc(list, cmp.Compare)
	out := nativeHistogram(&h)
	for _, q := range []float64{0.01, 0.25, 0.5, 0.9, 0.99, 0.999, 1} {
		low, high := quantile(out, q)
		exact := float64(list[int(math.Ceil(q*float64(len(list))))-1]) / 1e9
		if exact <= low*(1-1e-12) || exact > high*(1+1e-12) {
			t.Errorf("quantile %g is %g to %g, and in truth %g", q, low, high, exact)
		}
		if high/low > 1.091 {
			t.Errorf("the bucket from %g to %g is too wide", low, high)
		}
	}
}

// TestTheLongestTime checks that there is a bucket for the longest possible time.
func TestTheLongestTime(t *testing.T) {
	var h phases.Histogram
	h.Add(math.MaxInt64)
	h.Add(1)
	low, high := quantile(nativeHistogram(&h), 1)
	if longest := time.Duration(math.MaxInt64).Seconds(); longest <= low || longest > high {
		t.Errorf("%g s is in the bucket from %g to %g", longest, low, high)
	}
}

func TestSendTimes(t *testing.T) {
	r := Rank{Engine: &engine{peers: []state.PeerCounters{{Rank: 1}, {Rank: 2}, {Rank: 3}}},
		Recorder: phases.NewRecorder(0, manyPeers(3), 1)}
	for range 90 {
		r.Recorder.RecordMessage(sent(1, 100*time.Nanosecond), nil) // 4 µs in total
		r.Recorder.RecordMessage(received(1, time.Second), nil)
	}
	for range 10 {
		r.Recorder.RecordMessage(sent(1, time.Millisecond), nil)
	}
	r.Recorder.RecordMessage(sent(2, time.Millisecond), nil)
	near := func(got, want float64) bool { return got > want/1.091 && got < want*1.091 }
	if p50, p99, n, ok := r.SendTimes(1); !ok || n != 100 || !near(p50, 4e-6) || !near(p99, 40e-3) {
		t.Errorf("%g, %g, %d, %v", p50, p99, n, ok)
	}
	for _, peer := range []int{-1, 0, 2, 3, 4} { // rank 2 uses the series shared by all other peers
		if _, _, n, ok := r.SendTimes(peer); ok || n != 0 {
			t.Errorf("rank %d: %d", peer, n)
		}
	}
	var zeros phases.Histogram
	zeros.ZeroCount = 3
	if q := estimateQuantile(&zeros, 0.5, zeros.Count()); q != 0 {
		t.Errorf("%g", q)
	}
}

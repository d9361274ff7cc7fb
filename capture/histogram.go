package capture

import (
	"math"
	"math/bits"
	"slices"
	"time"
)

// perOctave is the number of buckets for each power of two. This resolution limits the error of quantiles to 3.2 %.
const perOctave = 32

// exactMessages is the largest number of messages in a recording for which quantiles are still exact.
const exactMessages = 1_000_000

// histogram counts durations in buckets, in constant memory. Until dropSamples is called, it also stores every
// duration. It allocates octaves on demand, so that thousands of histograms need little memory.
type histogram struct {
	// durations contains every duration added so far, unless isApproximate is true.
	durations     []time.Duration
	isApproximate bool
	count         uint64
	max           time.Duration
	octaves       [64]*[perOctave]uint32
}

// add counts a duration. A negative one, which appears if the recorder's clock is set back, counts as 0.
func (h *histogram) add(d time.Duration) {
	if d < 0 {
		d = 0
	}
	if !h.isApproximate {
		h.durations = append(h.durations, d)
	}
	o, b := bucket(d)
	if h.octaves[o] == nil {
		h.octaves[o] = new([perOctave]uint32)
	}
	h.octaves[o][b]++
	h.count++
	h.max = max(h.max, d)
}

// dropSamples discards the stored durations; quantiles are approximate from then on.
func (h *histogram) dropSamples() { h.durations, h.isApproximate = nil, true }

// quantiles returns the quantiles of the durations. They are exact (nearest rank), or within 3.2 % after dropSamples.
func (h *histogram) quantiles() Quantiles {
	q := Quantiles{Count: h.count, Max: h.max.Seconds(), Approximate: h.isApproximate}
	at := h.quantile
	if !h.isApproximate {
		slices.Sort(h.durations)
		at = func(q float64) time.Duration {
			if h.count == 0 {
				return 0
			}
			return h.durations[nearestRank(q, h.count)]
		}
	}
	q.P50, q.P90, q.P99 = at(0.5).Seconds(), at(0.9).Seconds(), at(0.99).Seconds()
	return q
}

// nearestRank returns the index of quantile q among n sorted values; n is at least 1.
func nearestRank(q float64, n uint64) uint64 { return max(uint64(math.Ceil(q*float64(n))), 1) - 1 }

// bucket returns the place of a duration in the histogram: its octave (the power of two) and the bucket within the
// octave (the five bits after the leading one).
func bucket(d time.Duration) (octave, b int) {
	n := uint64(d)
	if n < perOctave {
		return 0, int(n)
	}
	octave = bits.Len64(n) - 1
	return octave, int(n>>(octave-5)) & (perOctave - 1)
}

// quantile returns the upper edge of the bucket that contains quantile q, but not more than the longest duration.
func (h *histogram) quantile(q float64) time.Duration {
	if h.count == 0 {
		return 0
	}
	rank := nearestRank(q, h.count)
	for o, octave := range h.octaves {
		if octave == nil {
			continue
		}
		for b, n := range octave {
			if rank < uint64(n) {
				return min(edge(o, b), h.max)
			}
			rank -= uint64(n)
		}
	}
	return h.max
}

// edge returns the upper edge of a bucket, which is the longest duration that falls in it.
func edge(octave, b int) time.Duration {
	if octave == 0 {
		return time.Duration(b)
	}
	return time.Duration(uint64(perOctave+b+1)<<(octave-5) - 1)
}

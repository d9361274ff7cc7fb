package capture

import (
	"math"
	"math/bits"
	"time"
)

// perOctave is the number of buckets per doubling: quantiles are within 3.2 %.
const perOctave = 32

// histogram counts durations in constant memory. Octaves are allocated as they
// are needed, so that thousands of them cost little.
type histogram struct {
	count   uint64
	max     time.Duration
	octaves [64]*[perOctave]uint32
}

func (h *histogram) add(d time.Duration) {
	if d < 0 {
		d = 0
	}
	o, b := bucket(d)
	if h.octaves[o] == nil {
		h.octaves[o] = new([perOctave]uint32)
	}
	h.octaves[o][b]++
	h.count++
	h.max = max(h.max, d)
}

// bucket returns the place of a duration: its power of two, and the five bits
// behind the leading one.
func bucket(d time.Duration) (octave, b int) {
	n := uint64(d)
	if n < perOctave {
		return 0, int(n)
	}
	octave = bits.Len64(n) - 1
	return octave, int(n>>(octave-5)) & (perOctave - 1)
}

// quantile returns the smallest bucket's upper edge under which at least the q-th
// part of what was counted lies, but no more than the maximum.
func (h *histogram) quantile(q float64) time.Duration {
	if h.count == 0 {
		return 0
	}
	rank := max(uint64(math.Ceil(q*float64(h.count))), 1) - 1
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

// edge returns the upper edge of a bucket.
func edge(octave, b int) time.Duration {
	if octave == 0 {
		return time.Duration(b)
	}
	return time.Duration(uint64(perOctave+b+1)<<(octave-5) - 1)
}

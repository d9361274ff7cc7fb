package phases

import "math"

// Histograms are native histograms of Prometheus with schema 3: PerOctave buckets per power of two, each about
// 9 % wide.
const (
	Schema    = 3
	PerOctave = 1 << Schema
	// minKey is the smallest bucket index, that of a nanosecond. octaves is the number of powers of two up to
	// the longest time.Duration.
	minKey  = -30 * PerOctave
	octaves = 65
)

// mantissas are the upper bounds of an octave's buckets except the last, as mantissas of floating-point
// numbers. guess has, for each value of a mantissa's first four bits, the number of bounds below all such
// mantissas. No two bounds have the same first four bits.
var mantissas, guess = func() (bounds [PerOctave + 1]uint64, first [16]uint8) {
	for i := range PerOctave {
		bounds[i] = math.Float64bits(math.Exp2(float64(i)/PerOctave)) & mantissaMask
	}
	bounds[PerOctave] = math.MaxUint64
	for top := range first {
		for _, b := range bounds {
			if b < uint64(top)<<(mantissaBits-4) {
				first[top]++
			}
		}
	}
	return bounds, first
}()

const (
	mantissaBits = 52
	mantissaMask = 1<<mantissaBits - 1
)

// keyOf returns the index, counted from minKey, of the bucket for a time of ns nanoseconds, which is not 0. The
// bucket's upper bound is 2^((keyOf+minKey)/PerOctave) seconds, inclusive.
func keyOf(ns uint64) int {
	b := math.Float64bits(float64(ns) / 1e9)
	mantissa := b & mantissaMask
	n := int(guess[mantissa>>(mantissaBits-4)])
	if mantissa > mantissas[n] {
		n++
	}
	return (int(b>>mantissaBits)-1023)*PerOctave + n - minKey
}

package phases

import "math"

// Histograms are native ones of Prometheus of schema 3: PerOctave buckets to a power of two, each
// about 9 % wide.
const (
	Schema    = 3
	PerOctave = 1 << Schema
	// minKey is the least index of a bucket, that of a nanosecond, and octaves
	// how many powers of two there are up to the longest time.Duration.
	minKey  = -30 * PerOctave
	octaves = 65
)

// mantissas are the upper bounds of an octave's buckets but the last, as the
// mantissas of floating point numbers, and guess has how many of them are below all
// numbers whose mantissa begins with four given bits. No two bounds begin alike.
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

// keyOf returns the index of the bucket, from minKey on, that holds a time of ns
// nanoseconds, which is not 0: those up to 2^((keyOf+minKey)/PerOctave) seconds and
// above the one before.
func keyOf(ns uint64) int {
	b := math.Float64bits(float64(ns) / 1e9)
	mantissa := b & mantissaMask
	n := int(guess[mantissa>>(mantissaBits-4)])
	if mantissa > mantissas[n] {
		n++
	}
	return (int(b>>mantissaBits)-1023)*PerOctave + n - minKey
}

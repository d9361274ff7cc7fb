package phases

import "math"

// Histograms use the buckets of Prometheus's native histograms with schema 3: PerOctave buckets for each power of two,
// each about 9 % wide.
const (
	Schema    = 3
	PerOctave = 1 << Schema
	// minKey is the smallest index of a bucket, namely of the one that contains one nanosecond. numOctaves is the
	// number of powers of two from there to the longest time.Duration.
	minKey     = -30 * PerOctave
	numOctaves = 65
)

// mantissas contains the upper bounds of all but the last bucket of an octave, as mantissas of floating-point numbers.
// firstBound is indexed by the first four bits of a mantissa; it holds the number of bounds below all mantissas with
// these bits. No two bounds share their first four bits.
var mantissas, firstBound = func() (bounds [PerOctave + 1]uint64, first [16]uint8) {
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

// bucketKey returns the index, relative to minKey, of the bucket for a time of ns nanoseconds, which must not be 0. The
// upper bound of the bucket is 2^((bucketKey+minKey)/PerOctave) seconds, inclusive.
func bucketKey(ns uint64) int {
	b := math.Float64bits(float64(ns) / 1e9)
	mantissa := b & mantissaMask
	n := int(firstBound[mantissa>>(mantissaBits-4)])
	if mantissa > mantissas[n] {
		n++
	}
	return (int(b>>mantissaBits)-1023)*PerOctave + n - minKey
}

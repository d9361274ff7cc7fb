package metrics

import (
	"math"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/zrlmpi/zrlmpid/metrics/phases"
)

// Classic buckets are for a Prometheus server that does not support native histograms. Their upper bounds are the
// powers of two from 2^minClassicExp to 1 second. Each of them is also the upper bound of every phases.PerOctave-th
// native bucket.
const minClassicExp = -17

// classicBounds holds the upper bounds of the classic buckets, in seconds.
var classicBounds = prometheus.ExponentialBuckets(math.Exp2(minClassicExp), 2, 1-minClassicExp)

// classicIndex returns the index of the classic bucket that contains the native bucket key. It returns
// len(classicBounds) for native buckets above all classic ones.
func classicIndex(key int) int {
	octave := (key + phases.PerOctave - 1) >> phases.Schema // round up
	return min(max(octave-minClassicExp, 0), len(classicBounds))
}

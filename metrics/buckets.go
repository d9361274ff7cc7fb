package metrics

import (
	"math"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/zrlmpi/zrlmpid/metrics/phases"
)

// The classic buckets, for a Prometheus without native ones, end at the powers of two from
// 2^classicFirst to 1 second, as every phases.PerOctave-th native bucket does.
const classicFirst = -17

var classicBounds = prometheus.ExponentialBuckets(math.Exp2(classicFirst), 2, 1-classicFirst)

// classicOf returns the classic bucket that a native one is part of; len(classicBounds) is
// beyond the last.
func classicOf(key int) int {
	octave := (key + phases.PerOctave - 1) >> phases.Schema // rounded up
	return min(max(octave-classicFirst, 0), len(classicBounds))
}

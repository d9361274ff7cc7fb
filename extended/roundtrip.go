package extended

import "time"

// rttEstimator estimates the round-trip time, and computes the timeout of E30.
type rttEstimator struct {
	// smoothed and variation are SRTT and RTTVAR of RFC 6298; 0 before the first measurement. latest is the last
	// measurement, and minRTT the smallest one.
	smoothed, variation time.Duration
	latest, minRTT      time.Duration
	rto                 time.Duration // the current timeout, including doublings
	// doublings is the number of timeouts that have expired since the last measurement.
	doublings int
}

func (r *rttEstimator) reset(t *Timing) { *r = rttEstimator{rto: t.InitialRTO} }

// isMeasured reports whether a round-trip time was measured.
func (r *rttEstimator) isMeasured() bool { return r.smoothed != 0 }

// clockUnit is the binary logarithm of the unit of clocks on the wire, in nanoseconds. The unit is 1.024 µs, so that
// conversion needs no division.
const clockUnit = 10

// clockAt returns the clock value that a packet sent at the given time carries. It is never 0.
func clockAt(now Instant) uint32 { return uint32(now>>clockUnit) | 1 }

// echoRTT returns the round-trip time of the transmission that carried the given clock value, excluding the time by
// which the acknowledgement was delayed. It returns 0 if the time is unknown.
func echoRTT(now Instant, clock uint32, delay time.Duration) time.Duration {
	age := clockAt(now) - clock
	if clock == 0 || age >= 1<<31 {
		return 0
	}
	return max(time.Duration(age)<<clockUnit-delay, 1)
}

// addSample records a measured round-trip time.
func (r *rttEstimator) addSample(d time.Duration, timing *Timing) {
	d = max(d, time.Nanosecond)
	r.latest = d
	if r.smoothed == 0 {
		r.smoothed, r.variation, r.minRTT = d, d/2, d
	} else {
		r.minRTT = min(r.minRTT, d)
		r.variation += ((r.smoothed - d).Abs() - r.variation) / 4
		r.smoothed = max(r.smoothed+(d-r.smoothed)/8, time.Nanosecond)
	}
	r.doublings = 0
	r.rto = r.baseTimeout(timing)
}

// baseTimeout returns the timeout without doublings.
func (r *rttEstimator) baseTimeout(t *Timing) time.Duration {
	if r.smoothed == 0 {
		return min(t.InitialRTO, t.MaxRTO)
	}
	return min(r.smoothed+max(4*r.variation, t.MinRTO), t.MaxRTO)
}

// backOff doubles the timeout.
func (r *rttEstimator) backOff(t *Timing, rng *random) {
	r.doublings++
	r.rto = r.baseTimeout(t)
	for i := 0; i < r.doublings && r.rto < t.MaxRTO; i++ {
		r.rto = min(2*r.rto, t.MaxRTO)
	}
	r.rto = rng.jitter(r.rto)
}

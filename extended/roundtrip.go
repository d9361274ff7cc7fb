package extended

import "time"

// roundTrip estimates the round-trip time, and computes the time-out of E30.
type roundTrip struct {
	smoothed, variation time.Duration
	latest, least       time.Duration
	rto                 time.Duration // the current time-out, including doublings
	doublings           int
}

func (r *roundTrip) reset(t *Timing) { *r = roundTrip{rto: t.InitialRTO} }

// known reports whether a round-trip time was measured.
func (r *roundTrip) known() bool { return r.smoothed != 0 }

// clockUnit is the binary logarithm of the unit of clocks on the wire, in nanoseconds. The unit is 1.024 µs, so that
// conversion needs no division.
const clockUnit = 10

// clockAt returns the clock of a packet sent at the given time. It is never 0.
func clockAt(now Instant) uint32 { return uint32(now>>clockUnit) | 1 }

// tripOf returns the round-trip time of the transmission with the given clock, without the delay of its
// acknowledgement, or 0 if unknown.
func tripOf(now Instant, clock uint32, delay time.Duration) time.Duration {
	age := clockAt(now) - clock
	if clock == 0 || age >= 1<<31 {
		return 0
	}
	return max(time.Duration(age)<<clockUnit-delay, 1)
}

// measured records a measured round-trip time.
func (r *roundTrip) measured(d time.Duration, t *Timing) {
	d = max(d, time.Nanosecond)
	r.latest = d
	if r.smoothed == 0 {
		r.smoothed, r.variation, r.least = d, d/2, d
	} else {
		r.least = min(r.least, d)
		r.variation += ((r.smoothed - d).Abs() - r.variation) / 4
		r.smoothed = max(r.smoothed+(d-r.smoothed)/8, time.Nanosecond)
	}
	r.doublings = 0
	r.rto = r.base(t)
}

// base returns the time-out without doublings.
func (r *roundTrip) base(t *Timing) time.Duration {
	if r.smoothed == 0 {
		return min(t.InitialRTO, t.MaxRTO)
	}
	return min(r.smoothed+max(4*r.variation, t.MinRTO), t.MaxRTO)
}

// timedOut doubles the time-out.
func (r *roundTrip) timedOut(t *Timing, rng *random) {
	r.doublings++
	r.rto = r.base(t)
	for i := 0; i < r.doublings && r.rto < t.MaxRTO; i++ {
		r.rto = min(2*r.rto, t.MaxRTO)
	}
	r.rto = rng.jitter(r.rto)
}

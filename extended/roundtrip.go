package extended

import "time"

// roundTrip is the estimator and the time-out of E30.
type roundTrip struct {
	smoothed, variation time.Duration
	latest, least       time.Duration
	rto                 time.Duration // as it stands, doublings included
	doublings           int
}

func (r *roundTrip) reset(t *Timing) { *r = roundTrip{rto: t.InitialRTO} }

// known reports whether one was measured.
func (r *roundTrip) known() bool { return r.smoothed != 0 }

// clockUnit is what a clock on the wire counts: 1.024 µs, as the power of two that takes
// no division.
const clockUnit = 10

// clockAt is what a packet says of the time at which it is sent; never 0.
func clockAt(now Instant) uint32 { return uint32(now>>clockUnit) | 1 }

// tripOf is how long the transmission of that clock and its acknowledgement were on
// their way, or 0 if that is not known.
func tripOf(now Instant, clock uint32, delay time.Duration) time.Duration {
	age := clockAt(now) - clock
	if clock == 0 || age >= 1<<31 {
		return 0
	}
	return max(time.Duration(age)<<clockUnit-delay, 1)
}

// measured takes a round trip of a packet that was sent once.
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

// base is the time-out without doublings.
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

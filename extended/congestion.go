package extended

import "time"

// Sizes of the congestion window in packets (E28).
const (
	initialWindow = 16
	minWindow     = 4
)

// congestion is the window of E28: how many packets may be in flight.
type congestion struct {
	window, threshold int
	// partial counts acknowledged packets towards the next one more.
	partial int
	// recovery is the order of the first transmission after the last halving.
	// What was lost before it is of the same round trip.
	recovery uint64
	// progress: something was acknowledged since the last halving.
	progress bool
}

func (w *congestion) reset() {
	*w = congestion{window: initialWindow, threshold: maxWindow, progress: true}
}

// acked notes that packets were acknowledged while the window was used.
func (w *congestion) acked(n, most int, used bool) {
	w.progress = true
	if !used {
		return
	}
	if w.window < w.threshold {
		w.window += n
	} else {
		w.partial += n
		if w.partial >= w.window {
			w.partial -= w.window
			w.window++
		}
	}
	w.window = min(w.window, max(most, minWindow))
}

// lost notes that a transmission was lost; next is the order of the one that
// comes next.
func (w *congestion) lost(order, next uint64) {
	if order < w.recovery || !w.progress {
		return
	}
	w.window = max(w.window/2, minWindow)
	w.threshold = w.window
	w.partial, w.recovery, w.progress = 0, next, false
}

// roundTrip is the estimator and the time-out of E30.
type roundTrip struct {
	smoothed, variation time.Duration
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
	if r.smoothed == 0 {
		r.smoothed, r.variation = d, d/2
	} else {
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

// reorder is how much later a packet must have been sent than one that is lost
// when only that one is acknowledged (E29).
func (r *roundTrip) reorder(t *Timing) time.Duration {
	if r.smoothed == 0 {
		return t.InitialRTO
	}
	return r.smoothed
}

package extended

import "time"

// Constants of HyStart++ (RFC 9406).
const (
	hyStartSamples  = 8
	hyStartGrowth   = 4
	hyStartRounds   = 5
	minTripIncrease = 4 * time.Millisecond
	maxTripIncrease = 16 * time.Millisecond
)

// hyStart ends slow start when the round-trip time increases, before the queue of the bottleneck is full (RFC 9406).
// Its zero value is the initial state.
type hyStart struct {
	end           uint64        // order of the transmission that begins the next round
	last, current time.Duration // minimum round-trip times of the last and the current round, or 0
	samples       int32         // number of measurements in the current round
	// rounds is the number of rounds of conservative slow start so far. baseline is the value of current at its
	// beginning, or 0 outside conservative slow start.
	rounds   int32
	baseline time.Duration
}

// growth returns the number of packets by which the window grows when n packets are acknowledged.
func (h *hyStart) growth(n int) float64 {
	if h.baseline > 0 {
		return float64(n) / hyStartGrowth
	}
	return float64(n)
}

// measured records the round-trip time of the transmission with the given order, and reports whether slow start is
// over. next is the order of the next transmission.
func (h *hyStart) measured(trip time.Duration, order, next uint64) (done bool) {
	if order >= h.end {
		if h.baseline > 0 {
			h.rounds++
		}
		h.end, h.last, h.current, h.samples = next, h.current, 0, 0
	}
	if h.current == 0 || trip < h.current {
		h.current = trip
	}
	h.samples++
	if h.samples < hyStartSamples {
		return false
	}
	switch {
	case h.baseline > 0:
		if h.current < h.baseline { // the increase was not caused by a queue
			h.baseline, h.rounds = 0, 0
		}
	case h.last > 0 && h.current >= h.last+min(max(h.last/8, minTripIncrease), maxTripIncrease):
		h.baseline = h.current
	}
	return h.rounds >= hyStartRounds
}

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

// hyStart ends slow start when the round trip increases, before the queue of the path is full
// (RFC 9406). It is 0 at first.
type hyStart struct {
	end           uint64        // order of the first transmission of the next round
	last, current time.Duration // the least round trip of the last round, and of this one; 0 if there is none
	samples       int32         // of this round
	// rounds is how many rounds conservative slow start has lasted, and baseline current as it was when that began, or 0.
	rounds   int32
	baseline time.Duration
}

// growth is by how much the window grows when n packets are acknowledged.
func (h *hyStart) growth(n int) float64 {
	if h.baseline > 0 {
		return float64(n) / hyStartGrowth
	}
	return float64(n)
}

// measured takes a round trip, of the transmission of that order; next is the order of the one
// that comes next. It reports whether slow start is to end.
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
		if h.current < h.baseline { // it was no queue
			h.baseline, h.rounds = 0, 0
		}
	case h.last > 0 && h.current >= h.last+min(max(h.last/8, minTripIncrease), maxTripIncrease):
		h.baseline = h.current
	}
	return h.rounds >= hyStartRounds
}

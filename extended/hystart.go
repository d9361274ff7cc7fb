package extended

import "time"

// Constants of HyStart++ (RFC 9406).
const (
	hyStartSamples = 8
	hyStartGrowth  = 4
	hyStartRounds  = 5
	minRTTIncrease = 4 * time.Millisecond
	maxRTTIncrease = 16 * time.Millisecond
)

// hyStart ends slow start when the round-trip time increases, before the queue of the bottleneck is full (RFC 9406).
// Its zero value is the initial state.
type hyStart struct {
	roundEnd            uint64        // order of the transmission that begins the next round
	lastMin, currentMin time.Duration // minimum round-trip times of the last and the current round, or 0
	samples             int32         // number of measurements in the current round
	// cssRounds is the number of rounds that conservative slow start has lasted so far. baseline is the value that
	// currentMin had when it began, or 0 outside conservative slow start.
	cssRounds int32
	baseline  time.Duration
}

// growth returns the number of packets by which the window grows when n packets are acknowledged.
func (h *hyStart) growth(n int) float64 {
	if h.baseline > 0 {
		return float64(n) / hyStartGrowth
	}
	return float64(n)
}

// addSample records the round-trip time measured for the transmission with the given order, and reports whether slow
// start is over. The parameter next is the order of the next transmission.
func (h *hyStart) addSample(trip time.Duration, order, next uint64) (done bool) {
	if order >= h.roundEnd {
		if h.baseline > 0 {
			h.cssRounds++
		}
		h.roundEnd, h.lastMin, h.currentMin, h.samples = next, h.currentMin, 0, 0
	}
	if h.currentMin == 0 || trip < h.currentMin {
		h.currentMin = trip
	}
	h.samples++
	if h.samples < hyStartSamples {
		return false
	}
	switch {
	case h.baseline > 0:
		if h.currentMin < h.baseline { // the increase was not caused by a queue
			h.baseline, h.cssRounds = 0, 0
		}
	case h.lastMin > 0 && h.currentMin >= h.lastMin+min(max(h.lastMin/8, minRTTIncrease), maxRTTIncrease):
		h.baseline = h.currentMin
	}
	return h.cssRounds >= hyStartRounds
}

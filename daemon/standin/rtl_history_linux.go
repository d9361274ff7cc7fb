package standin

import "sort"

// historyLen is how many reports of a simulation are kept: those of 3 s at a step each 200 µs, and of half a second at the shortest steps.
const historyLen = 1 << 14

// report is a cycle that a simulation has reported, or 0 when it was started.
type report struct {
	at                int64 // in nanoseconds since 1970
	simulation, cycle uint64
}

// history has the reports of the recent past.
type history struct {
	ring []report
	next int // the place of the next report, once the ring is full
}

// add adds a report. When the clock was set back, the others are forgotten: they cannot be searched any more.
func (h *history) add(r report) {
	if n := len(h.ring); n > 0 && h.nth(n-1).at > r.at {
		h.ring, h.next = h.ring[:0], 0
	}
	if len(h.ring) < historyLen {
		h.ring = append(h.ring, r)
		return
	}
	h.ring[h.next] = r
	h.next = (h.next + 1) % historyLen
}

// nth returns a report by its age, the oldest first.
func (h *history) nth(i int) report { return h.ring[(h.next+i)%len(h.ring)] }

// at returns the last report before a time, or false if none is known.
func (h *history) at(nanoseconds int64) (report, bool) {
	i := sort.Search(len(h.ring), func(i int) bool { return h.nth(i).at > nanoseconds })
	if i == 0 {
		return report{}, false
	}
	return h.nth(i - 1), true
}

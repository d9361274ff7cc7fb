package standin

import "sort"

// historyLen is the number of reports kept of a simulation: 3 s with a step every 200 µs, half a second with
// the shortest steps.
const historyLen = 1 << 14

// report is a cycle reported by a simulation, or 0 at its start.
type report struct {
	at                int64 // in nanoseconds since 1970
	simulation, cycle uint64
}

// history holds the most recent reports.
type history struct {
	ring []report
	next int // index of the next report, once the ring is full
}

// add adds a report. If the clock was set back, it drops all others, which are no longer sorted.
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

// nth returns the i-th report, oldest first.
func (h *history) nth(i int) report { return h.ring[(h.next+i)%len(h.ring)] }

// at returns the last report before a time, or false if none is known.
func (h *history) at(nanoseconds int64) (report, bool) {
	i := sort.Search(len(h.ring), func(i int) bool { return h.nth(i).at > nanoseconds })
	if i == 0 {
		return report{}, false
	}
	return h.nth(i - 1), true
}

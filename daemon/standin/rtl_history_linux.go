package standin

import "sort"

// historyLen is the number of cycle reports kept for a simulation. They cover 3 s with steps of 200 µs, and half a
// second with the shortest steps.
const historyLen = 1 << 14

// cycleReport contains a cycle that a simulation reported, counted from the start of the simulation, and the time of
// the report.
type cycleReport struct {
	unixNano          int64 // in nanoseconds since 1970
	simulation, cycle uint64
}

// history holds the most recent reports.
type history struct {
	ring []cycleReport
	next int // index of the next report once the ring is full
}

// add adds a report. If the clock was set back, add first drops all earlier reports, to keep the reports sorted by
// time.
func (h *history) add(report cycleReport) {
	if n := len(h.ring); n > 0 && h.nth(n-1).unixNano > report.unixNano {
		h.ring, h.next = h.ring[:0], 0
	}
	if len(h.ring) < historyLen {
		h.ring = append(h.ring, report)
		return
	}
	h.ring[h.next] = report
	h.next = (h.next + 1) % historyLen
}

// nth returns the i-th report, counted from the oldest.
func (h *history) nth(i int) cycleReport { return h.ring[(h.next+i)%len(h.ring)] }

// lastBefore returns the last report at or before the given time, or false if history holds none.
func (h *history) lastBefore(nanoseconds int64) (cycleReport, bool) {
	i := sort.Search(len(h.ring), func(i int) bool { return h.nth(i).unixNano > nanoseconds })
	if i == 0 {
		return cycleReport{}, false
	}
	return h.nth(i - 1), true
}

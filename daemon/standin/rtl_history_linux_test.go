package standin

import "testing"

func TestHistory(t *testing.T) {
	var h history
	want := func(at int64, cycle uint64, known bool) {
		t.Helper()
		if r, ok := h.lastBefore(at); ok != known || r.cycle != cycle {
			t.Errorf("at %d: cycle %d, %v, want %d, %v", at, r.cycle, ok, cycle, known)
		}
	}
	want(5, 0, false)
	for i := range int64(historyLen + 100) {
		h.add(cycleReport{unixNano: 10 * i, simulation: 1, cycle: uint64(i)})
		if i == 3 {
			want(-1, 0, false)
			want(0, 0, true)
			want(19, 1, true)
			want(20, 2, true)
			want(1000, 3, true)
		}
	}
	const last = historyLen + 99
	want(10*last+5, last, true)
	want(10*last-5, last-1, true)
	want(10*100, 100, true) // the oldest report that is kept
	want(10*100-1, 0, false)
	if len(h.ring) != historyLen {
		t.Errorf("%d reports are kept", len(h.ring))
	}
	// Set the clock back.
	h.add(cycleReport{unixNano: 7, simulation: 1, cycle: 9999})
	want(6, 0, false)
	want(8, 9999, true)
}

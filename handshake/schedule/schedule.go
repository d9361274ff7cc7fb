// Package schedule enumerates schedules of faults, for tests that search all of them.
// It knows no network: a test carries out each schedule on a world of its own.
package schedule

import "slices"

// Fault is what befalls one packet: the nth of a run, counted from 0, and which of the
// test's kinds of fault it meets.
type Fault struct{ Nth, Kind int }

// Each has run carry out every schedule of up to depth faults, of so many kinds, in the
// order of packets. run returns how many packets there were, which may depend on
// the faults: what is retransmitted meets faults as well. A packet that comes before the
// last fault of a schedule must not depend on that fault.
func Each(kinds, depth int, run func(faults []Fault) (packets int)) {
	var from func(faults []Fault)
	from = func(faults []Fault) {
		packets := run(faults)
		if len(faults) == depth {
			return
		}
		next := 0
		if n := len(faults); n > 0 {
			next = faults[n-1].Nth + 1
		}
		for nth := next; nth < packets; nth++ {
			for kind := range kinds {
				from(append(slices.Clip(faults), Fault{nth, kind}))
			}
		}
	}
	from(nil)
}

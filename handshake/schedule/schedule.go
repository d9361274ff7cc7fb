// Package schedule enumerates schedules of faults, for tests that try all of them. It does not simulate a network; each
// test executes the schedules in its own simulation.
package schedule

import "slices"

// Fault describes a fault that affects one packet. Nth is the number of the packet within the run, counted from 0. Kind
// is the kind of fault, as numbered by the test.
type Fault struct{ Nth, Kind int }

// Each calls run with every schedule of up to depth faults. The kinds of the faults are 0 to kinds − 1, and the
// faults of a schedule affect different packets, in ascending order. run returns the number of packets in its run,
// which may depend on the faults, because retransmissions are packets as well. The packets before the last fault of a
// schedule must not depend on that fault.
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

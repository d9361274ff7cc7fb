// Package schedule enumerates schedules of faults, for tests that search all of them. It has no network: a test
// executes each schedule in a world of its choice.
package schedule

import "slices"

// Fault is a fault of one packet: Nth is the number of the packet in a run, counted from 0, and Kind one of the test's
// kinds of fault.
type Fault struct{ Nth, Kind int }

// Each calls run with every schedule of up to depth faults of the given number of kinds, in the order of packets. run
// returns the number of packets in its run, which may depend on the faults: retransmissions can be faulty as well. The
// packets before the last fault of a schedule must not depend on that fault.
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

package statuspage

import (
	"time"

	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// failureView is a group of failures with the same rank, operation and error.
type failureView struct {
	*state.Failure // the most recent failure
	// Times is the number of failures in the group. First is the time of the oldest entry; for a series of equal
	// failures, that is the time of the last failure in the series.
	Times int
	First time.Time
	// Earlier lists the failures before the most recent one, newest first. More is the number of failures omitted from
	// Earlier.
	Earlier []*state.Failure
	More    int
}

// maxEarlier is the maximum number of earlier failures listed for a group.
const maxEarlier = 20

// groupFailures groups failures with the same rank, operation and error, newest first.
func groupFailures(failures []state.Failure) []failureView {
	type kind struct {
		rank         int
		what, reason string
	}
	var folded []failureView
	places := make(map[kind]int)
	for i := range failures {
		failure := &failures[i]
		k := kind{failure.Rank, failure.What(), failure.Reason}
		place, known := places[k]
		if !known {
			places[k] = len(folded)
			folded = append(folded, failureView{Failure: failure, Times: max(failure.Count, 1), First: failure.Time})
			continue
		}
		v := &folded[place]
		v.Times, v.First = v.Times+max(failure.Count, 1), failure.Time
		if len(v.Earlier) < maxEarlier {
			v.Earlier = append(v.Earlier, failure)
		} else {
			v.More++
		}
	}
	return folded
}

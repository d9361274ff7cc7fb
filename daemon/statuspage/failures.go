package statuspage

import (
	"time"

	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// failureView is a group of equal failures: of one rank and operation, with one error.
type failureView struct {
	*state.Failure // the latest one
	// Times counts all of them. First is the time of the oldest; a run of equal failures has the time of its
	// last one.
	Times int
	First time.Time
	// Earlier are failures before the latest, newest first. More counts those not listed.
	Earlier []*state.Failure
	More    int
}

// maxEarlier limits the earlier failures listed in a group.
const maxEarlier = 20

// foldFailures groups failures, newest first.
func foldFailures(failures []state.Failure) []failureView {
	type kind struct {
		rank         int
		what, reason string
	}
	var folded []failureView
	places := make(map[kind]int)
	for i := range failures {
		f := &failures[i]
		k := kind{f.Rank, f.What(), f.Reason}
		place, known := places[k]
		if !known {
			places[k] = len(folded)
			folded = append(folded, failureView{Failure: f, Times: max(f.Count, 1), First: f.Time})
			continue
		}
		v := &folded[place]
		v.Times, v.First = v.Times+max(f.Count, 1), f.Time
		if len(v.Earlier) < maxEarlier {
			v.Earlier = append(v.Earlier, f)
		} else {
			v.More++
		}
	}
	return folded
}

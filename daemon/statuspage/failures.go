package statuspage

import (
	"time"

	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// failureView is equal failures of a rank: those of one operation with one error.
type failureView struct {
	*state.Failure // the last
	// Times counts all of them, and First is when the oldest ended; a row of failures counts as the last of it.
	Times int
	First time.Time
	// Earlier are those before the last, the newest first, and More counts those that are not listed.
	Earlier []*state.Failure
	More    int
}

// maxEarlier bounds the earlier failures that are listed of equal ones.
const maxEarlier = 20

// foldFailures folds failures, the newest first.
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

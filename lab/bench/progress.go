package bench

import (
	"fmt"
	"time"
)

// progressCounter counts the completed measurements, and the total number of measurements known so far.
type progressCounter struct{ done, all int }

// reportProgress prints the first measurement of rest, which runs next, and an estimate of the remaining time.
func (r *runner) reportProgress(rest []scheduled) {
	r.clock.done++
	left := ""
	if t := r.estimateRemaining(rest); t > 0 {
		left = fmt.Sprintf(", about %v left", t.Round(time.Second))
	}
	fmt.Fprintf(r.out, "[%d/%d%s] round %d of %d: %v\n", r.clock.done, r.clock.all, left, rest[0].round+1, r.Rounds,
		rest[0].measurement)
}

// estimateRemaining estimates how long the remaining measurements take. A measurement that ran before is expected to
// take as long as last time. The others are estimated by their relative weights.
func (r *runner) estimateRemaining(rest []scheduled) (left time.Duration) {
	var took time.Duration
	var weight float64
	for _, m := range r.measurements {
		if m.took > 0 {
			took += m.took
			weight += m.w.weight
		}
	}
	if weight == 0 {
		return 0
	}
	for _, m := range rest {
		switch {
		case m.failed:
		case m.took > 0:
			left += m.took
		default:
			left += time.Duration(float64(took) / weight * m.w.weight)
		}
	}
	return left
}

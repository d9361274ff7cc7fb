package bench

import (
	"fmt"
	"time"
)

// clock guesses how long a run will take.
type clock struct {
	done, all int
	start     time.Time
}

func (r *runner) begin() {
	r.clock = clock{all: len(r.measurements) * r.Rounds, start: time.Now()}
}

// reportProgress writes which measurement begins, and the estimated time left.
func (r *runner) reportProgress(m *measurement, round int) {
	r.clock.done++
	left := ""
	if t := r.left(m, round); t > 0 {
		left = fmt.Sprintf(", about %v left", t.Round(time.Second))
	}
	fmt.Fprintf(r.out, "[%d/%d%s] round %d of %d: %v\n", r.clock.done, r.clock.all, left, round+1, r.Rounds, m)
}

// left is the time that this measurement and those after it take. What was
// measured before takes as long again; of the others it is known how they compare.
func (r *runner) left(now *measurement, round int) time.Duration {
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
	guess := func(m *measurement) time.Duration {
		switch {
		case m.failed:
			return 0
		case m.took > 0:
			return m.took
		}
		return time.Duration(float64(took) / weight * m.w.weight)
	}
	var left time.Duration
	before := true
	for _, m := range r.measurements {
		before = before && m != now
		rounds := r.Rounds - round
		if before {
			rounds--
		}
		left += guess(m) * time.Duration(rounds)
	}
	return left
}

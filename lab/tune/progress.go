package tune

import (
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"
)

// shared serializes writes of failing ranks to the progress output.
type shared struct {
	mu sync.Mutex
	io.Writer
}

func (s *shared) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Writer.Write(b)
}

// clock counts group measurements, to estimate the remaining time.
type clock struct{ done, all int }

func (t *tuner) begin() { t.clock.all = len(t.groups) * t.Rounds }

// reportProgress writes the group that is measured next, and the estimated time left.
func (t *tuner) reportProgress(g *group, round int) {
	t.clock.done++
	left := ""
	if d := t.left(g, round); d > 0 {
		left = fmt.Sprintf(", about %v left", d.Round(time.Second))
	}
	turns := ""
	if cores := runtime.NumCPU(); g.ranks > cores {
		turns = fmt.Sprintf(" (%d cores: they take turns)", cores)
	}
	fmt.Fprintf(t.out, "[%d/%d%s] round %d of %d: %s, %d ranks%s: %d measurements\n",
		t.clock.done, t.clock.all, left, round+1, t.Rounds, g.transport, g.ranks, turns, len(g.cells))
}

// left estimates the time that this group and the following ones take. Groups measured before take as long as last
// time. For new groups it assumes the average time per cell and rank.
func (t *tuner) left(now *group, round int) time.Duration {
	var took time.Duration
	weight := 0
	for _, g := range t.groups {
		if g.took > 0 {
			took += g.took
			weight += len(g.cells) * g.ranks
		}
	}
	if weight == 0 {
		return 0
	}
	var left time.Duration
	before := true
	for _, g := range t.groups {
		before = before && g != now
		rounds := t.Rounds - round
		if before {
			rounds--
		}
		guess := g.took
		if guess == 0 {
			guess = took * time.Duration(len(g.cells)*g.ranks) / time.Duration(weight)
		}
		left += guess * time.Duration(rounds)
	}
	return min(left, t.Limit)
}

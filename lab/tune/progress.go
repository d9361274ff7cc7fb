package tune

import (
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"
)

// shared lets ranks that fail write to the progress output.
type shared struct {
	mu sync.Mutex
	io.Writer
}

func (s *shared) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Writer.Write(b)
}

// clock guesses how long a run will take.
type clock struct{ done, all int }

func (t *tuner) begin() { t.clock.all = len(t.groups) * t.Rounds }

// reportProgress writes which group is measured now, and the estimated time left.
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

// left is the time that this group and those after it take. What was measured before
// takes as long again; others are taken to need as long for a cell and rank.
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

package tune

import (
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"
)

// lockedWriter is an io.Writer for progress reports. Ranks that fail write their error output to it too, so its lock
// serializes all writes.
type lockedWriter struct {
	mu sync.Mutex
	io.Writer
}

func (s *lockedWriter) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Writer.Write(b)
}

// progressCounter counts how often groups have been measured, to estimate the remaining time.
type progressCounter struct{ done, all int }

func (t *tuner) startProgress() { t.clock.all = len(t.groups) * t.Rounds }

// reportProgress prints the group to be measured next, and an estimate of the remaining time.
func (t *tuner) reportProgress(g *group, round int) {
	t.clock.done++
	left := ""
	if d := t.estimateRemaining(g, round); d > 0 {
		left = fmt.Sprintf(", about %v left", d.Round(time.Second))
	}
	turns := ""
	if cores := runtime.NumCPU(); g.ranks > cores {
		turns = fmt.Sprintf(" (%d cores: they take turns)", cores)
	}
	fmt.Fprintf(t.out, "[%d/%d%s] round %d of %d: %s, %d ranks%s: %d measurements\n",
		t.clock.done, t.clock.all, left, round+1, t.Rounds, g.transport, g.ranks, turns, len(g.cells))
}

// estimateRemaining estimates how long the current group and the groups after it take. It assumes the previous duration
// for a group measured before, and the average time per cell and rank for a new group.
func (t *tuner) estimateRemaining(now *group, round int) time.Duration {
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

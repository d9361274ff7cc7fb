package mpe

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
)

const (
	// shortBudget is for how long a caller that waits looks for packets at
	// least. It is about what it takes to be woken.
	shortBudget = 50 * time.Microsecond
	// longBudget is for how long he looks while messages come quickly. It is more
	// than it takes the other side to be woken and to answer: two ranks that have
	// both gone to sleep once would otherwise wait for each other so every time.
	longBudget = 300 * time.Microsecond
	// quickly is how long waits take, smoothed, while messages come quickly.
	quickly = 400 * time.Microsecond
	// maxGap is the longest wait that is remembered, so that a few quick
	// messages after a pause are enough to begin to look longer.
	maxGap = 2 * quickly
	// pause is about how long he looks between two times that he lets other
	// goroutines run, and looks at the clock.
	pause = 3 * time.Microsecond
	// crowdedBudget is for how long he looks where the host has more ranks than
	// cores. It costs little, as he lets other processes run after every look,
	// and to be woken takes longer there.
	crowdedBudget = 2 * time.Millisecond
)

var (
	// looking counts the callers in the process that look. Each occupies a
	// core.
	looking atomic.Int32
	// cores is how many may.
	cores = int32(runtime.GOMAXPROCS(0))
)

// drive looks for packets until done is set or c has a value, for as long as that
// is better than to be woken. Done or c may be nil.
func (e *Engine) drive(ctx context.Context, done *atomic.Bool, c <-chan struct{}) {
	e.uncork()
	if len(e.drivers) == 0 || ctx.Err() != nil { // who has no time left gets none
		return
	}
	if looking.Add(1) <= cores {
		e.look(ctx, done, c)
	}
	looking.Add(-1)
}

func (e *Engine) look(ctx context.Context, done *atomic.Bool, c <-chan struct{}) {
	var mine uint64 // the drivers whose turn we have
	// Of most messages the clock need not be asked: start, last and end are 0
	// until it was. found: since then something was.
	var start, last, end handshake.Instant
	found := false
	for looks, every := 0, 8; ; looks++ {
		for i, d := range e.drivers {
			if mine&(1<<i) == 0 {
				if !d.take() {
					continue
				}
				mine |= 1 << i
			}
			if d.poll() > 0 {
				found = true
			}
		}
		if mine == 0 || done != nil && done.Load() || len(c) > 0 {
			break
		}
		if e.cfg.Crowded {
			yield()
		}
		if looks < every {
			continue
		}
		looks = 0
		runtime.Gosched()
		end = e.now()
		e.tickIfDue(end)
		if start == 0 || found { // whoever is served may soon be served again
			start, found = end, false
		}
		if end-start >= e.budget() || ctx.Err() != nil {
			break
		}
		switch {
		case last == 0:
		case end-last < pause && every < 1<<10:
			every *= 2
		case end-last > 2*pause && every > 1:
			every /= 2
		}
		last = end
	}
	e.waited(end - start)
	for i, d := range e.drivers {
		if mine&(1<<i) != 0 {
			d.visits.Add(1)
			d.leave()
		}
	}
}

// budget is for how long to look.
func (e *Engine) budget() time.Duration {
	if e.cfg.Crowded {
		return crowdedBudget
	}
	if time.Duration(e.gap.Load()) > quickly {
		return shortBudget
	}
	return longBudget
}

// waited remembers how long a wait has taken. Callers that do so at the same time
// may lose the one or the other, which does no harm.
func (e *Engine) waited(d time.Duration) {
	gap := e.gap.Load()
	e.gap.Store(gap + (int64(min(d, maxGap))-gap)/4)
}

// glance looks once, for a caller that will not wait.
func (e *Engine) glance() {
	e.uncork()
	for _, d := range e.drivers {
		if d.take() {
			d.poll()
			d.visits.Add(1)
			d.leave()
		}
	}
}

package mpe

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
)

const (
	// leastBudget is for how long a caller that waits looks for packets at
	// least. It is about what it takes to be woken.
	leastBudget = 20 * time.Microsecond
	// mostBudget is for how long he looks while messages come quickly: longer
	// than a round trip in a data centre, shorter than a time slice.
	mostBudget = 100 * time.Microsecond
	// maxGap is the longest wait that is remembered, so that a few quick
	// messages after a pause are enough to begin to look longer.
	maxGap = 4 * mostBudget
	// pause is about how long he looks between two times that he lets other
	// goroutines run, and looks at the clock.
	pause = 3 * time.Microsecond
	// heldUp is how long it takes to look once if other processes want the
	// core: then looking takes from them what they may need to answer. It is
	// less than their time slice and more than a hiccup.
	heldUp = 500 * time.Microsecond
	// afterHeldUp is for how long nobody in the process looks then.
	afterHeldUp = 10 * time.Millisecond
)

var (
	// looking counts the callers in the process that look. Each occupies a
	// core.
	looking atomic.Int32
	// cores is how many may.
	cores = int32(runtime.GOMAXPROCS(0))
	// notBefore is when looking may pay again after the process was held up,
	// on the clock of clockStart.
	notBefore  atomic.Int64
	clockStart = time.Now()
)

// drive looks for packets until done is set or c has a value, for as long as that
// is better than to be woken. Done or c may be nil. It began at start.
func (e *Engine) drive(ctx context.Context, done *atomic.Bool, c <-chan struct{}, start handshake.Instant) {
	if len(e.drivers) == 0 || notBefore.Load() > 0 && time.Since(clockStart) < time.Duration(notBefore.Load()) {
		return
	}
	if looking.Add(1) <= cores {
		e.look(ctx, done, c, start)
	}
	looking.Add(-1)
}

func (e *Engine) look(ctx context.Context, done *atomic.Bool, c <-chan struct{}, start handshake.Instant) {
	var mine uint64 // the drivers whose turn we have
	budget := e.budget()
	looks, every := 0, 8
	for last := start; ; {
		found := 0
		for i, d := range e.drivers {
			if mine&(1<<i) == 0 {
				if !d.take() {
					continue
				}
				mine |= 1 << i
			}
			found += d.poll()
		}
		if done != nil && done.Load() || len(c) > 0 || mine == 0 {
			break
		}
		if looks++; looks < every && found == 0 {
			continue
		}
		if found > 0 {
			start = e.now() // whoever is served may soon be served again
		}
		looks = 0
		runtime.Gosched()
		now := e.now()
		switch {
		case now-last > heldUp:
			notBefore.Store(int64(time.Since(clockStart) + afterHeldUp))
			budget = 0
		case now-last < pause && every < 1<<10:
			every *= 2
		case now-last > 2*pause && every > 1:
			every /= 2
		}
		if now-start >= budget || ctx.Err() != nil {
			break
		}
		last = now
	}
	now := int64(e.now())
	for i, d := range e.drivers {
		if mine&(1<<i) != 0 {
			d.driven.Store(now)
			d.leave()
		}
	}
}

// budget is for how long to look.
func (e *Engine) budget() time.Duration {
	gap := time.Duration(e.gap.Load())
	if 2*gap > mostBudget {
		return leastBudget
	}
	return max(2*gap, leastBudget)
}

// waited remembers how long a wait has taken. Callers that do so at the same time
// may lose the one or the other, which does no harm.
func (e *Engine) waited(d time.Duration) {
	gap := e.gap.Load()
	e.gap.Store(gap + (int64(min(d, maxGap))-gap)/4)
}

// glance looks once, for a caller that will not wait.
func (e *Engine) glance() {
	for _, d := range e.drivers {
		if d.take() {
			d.poll()
			d.driven.Store(int64(e.now()))
			d.leave()
		}
	}
}

package capi

import (
	"sync"
	"sync/atomic"
	"time"
)

// watchdog detects calls that take too long. Calls of upstream's library return no errors and therefore cannot time out
// by themselves. The watchdog costs three writes per call, and saves calls from reading a clock.
type watchdog struct {
	// limit and warning are the durations of a call after which the watchdog calls report, once for each. If one is 0,
	// that report is disabled.
	limit, warning time.Duration

	// current is the call in progress. callNumber is odd during a call, and unique for each call. Programs for
	// upstream's library call from one thread.
	current    atomic.Pointer[callEntry]
	callNumber atomic.Uint64

	stopped chan struct{}
	wait    sync.WaitGroup
}

func (w *watchdog) enter(c *callEntry) {
	w.current.Store(c)
	w.callNumber.Add(1)
}

func (w *watchdog) exit() { w.callNumber.Add(1) }

// tick returns the interval between two checks: a tenth of the shorter duration, but at least 1 ms and at most 1 s.
func (w *watchdog) tick() time.Duration {
	shorter := w.warning
	if w.limit > 0 && (shorter == 0 || w.limit < shorter) {
		shorter = w.limit
	}
	return max(min(shorter/10, time.Second), time.Millisecond)
}

// start watches calls until stop is called. report is called in a separate goroutine.
func (w *watchdog) start(report func(call string, limit time.Duration, over bool)) {
	w.stopped = make(chan struct{})
	w.wait.Go(func() {
		ticker := time.NewTicker(w.tick())
		defer ticker.Stop()
		var since time.Time
		var number uint64
		warned := false
		for {
			select {
			case <-w.stopped:
				return
			case now := <-ticker.C:
				if n := w.callNumber.Load(); n%2 == 0 || n != number {
					since, number, warned = now, n, false
					continue
				}
				lasted := now.Sub(since)
				switch {
				case w.limit > 0 && lasted >= w.limit:
					report(w.current.Load().name, w.limit, true)
					return
				case w.warning > 0 && lasted >= w.warning && !warned:
					warned = true
					report(w.current.Load().name, w.warning, false)
				}
			}
		}
	})
}

func (w *watchdog) stop() {
	close(w.stopped)
	w.wait.Wait()
}

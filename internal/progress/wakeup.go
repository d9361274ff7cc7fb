package progress

import (
	"slices"
	"sync/atomic"
	"time"
)

const (
	// wakeupSamples is how many measurements the median is of. The first ones follow one another;
	// then there is one when a caller sleeps, at most every wakeupInterval.
	wakeupSamples  = 9
	wakeupInterval = 50 * time.Millisecond
	// wakeupAfter is how long a measurement sleeps. A core that has slept for longer is no slower to wake.
	wakeupAfter = time.Millisecond
	// A host on which a wake-up takes longer than maxWakeup has more to do than it can: to poll for
	// longer would be no help.
	minWakeup, maxWakeup = time.Microsecond, 200 * time.Microsecond
	// unknownWakeup is assumed before anything was measured.
	unknownWakeup = 50 * time.Microsecond
)

// wakeups has what the last wake-ups of the process have cost. One goroutine at a time adds to it.
type wakeups struct {
	last   [wakeupSamples]time.Duration
	n      int // measured
	median atomic.Int64
}

// add adds a measurement, and reports whether another one is to follow at once.
func (w *wakeups) add(d time.Duration) (more bool) {
	w.last[w.n%wakeupSamples] = d
	w.n++
	last := w.last
	sorted := last[:min(w.n, wakeupSamples)] // callers must not allocate
	slices.Sort(sorted)
	w.median.Store(int64(min(max(sorted[len(sorted)/2], minWakeup), maxWakeup)))
	return w.n < wakeupSamples
}

// cost returns what a wake-up costs: the median.
func (w *wakeups) cost() time.Duration {
	if d := w.median.Load(); d != 0 {
		return time.Duration(d)
	}
	return unknownWakeup
}

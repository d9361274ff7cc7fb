package progress

import (
	"slices"
	"sync/atomic"
	"time"
)

const (
	// wakeupSamples is the number of measurements for the median. The first measurements are consecutive; later ones
	// are made when a caller sleeps, at most every wakeupInterval.
	wakeupSamples  = 9
	wakeupInterval = 50 * time.Millisecond
	// wakeupAfter is how long a measurement sleeps. A core that has slept longer takes no longer to wake up.
	wakeupAfter = time.Millisecond
	// A host on which a wake-up takes longer than maxWakeup is overloaded: polling longer would not help.
	minWakeup, maxWakeup = time.Microsecond, 200 * time.Microsecond
	// unknownWakeup is assumed before the first measurement.
	unknownWakeup = 50 * time.Microsecond
)

// wakeups has the costs of recent wake-ups of the process. One goroutine at a time adds to it.
type wakeups struct {
	last   [wakeupSamples]time.Duration
	n      int // number of measurements
	median atomic.Int64
}

// add adds a measurement, and reports whether another one should follow at once.
func (w *wakeups) add(d time.Duration) (more bool) {
	w.last[w.n%wakeupSamples] = d
	w.n++
	last := w.last
	sorted := last[:min(w.n, wakeupSamples)] // must not allocate
	slices.Sort(sorted)
	w.median.Store(int64(min(max(sorted[len(sorted)/2], minWakeup), maxWakeup)))
	return w.n < wakeupSamples
}

// cost returns the median cost of a wake-up.
func (w *wakeups) cost() time.Duration {
	if d := w.median.Load(); d != 0 {
		return time.Duration(d)
	}
	return unknownWakeup
}

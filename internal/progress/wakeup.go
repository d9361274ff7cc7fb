package progress

import (
	"slices"
	"sync/atomic"
	"time"
)

const (
	// wakeupSamples is the number of measurements from which the median is computed. The first measurements are
	// made one after the other; each later one is made when a caller goes to sleep, at most every
	// wakeupInterval.
	wakeupSamples  = 9
	wakeupInterval = 50 * time.Millisecond
	// wakeupAfter is the duration of the measured sleeps. After longer sleeps, a core takes no longer to wake up.
	wakeupAfter = time.Millisecond
	// Limits to which the measured cost of a wake-up is clipped. A wake-up that takes longer than maxWakeup means that
	// the host is overloaded, where more polling would not help.
	minWakeup, maxWakeup = time.Microsecond, 200 * time.Microsecond
	// unknownWakeup is the cost of a wake-up that is assumed until one has been measured.
	unknownWakeup = 50 * time.Microsecond
)

// wakeups contains the costs of the process's recent wake-ups. Only one goroutine at a time may call add.
type wakeups struct {
	recent [wakeupSamples]time.Duration
	n      int // number of measurements made
	median atomic.Int64
}

// add adds a measurement. It reports whether another one should follow immediately.
func (w *wakeups) add(d time.Duration) (more bool) {
	w.recent[w.n%wakeupSamples] = d
	w.n++
	last := w.recent
	sorted := last[:min(w.n, wakeupSamples)] // sorting must not allocate
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

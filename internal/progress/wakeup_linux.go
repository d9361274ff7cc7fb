package progress

import (
	"sync"
	"sync/atomic"
	"time"
)

// wakeupTimer measures how late a timer wakes up the process's poller. For the system, this takes as much work
// as waking up a sleeping process for a packet.
type wakeupTimer struct {
	wakeups
	watch *watch       // has no descriptor
	dueAt atomic.Int64 // time at which the timer expires
	next  atomic.Int64 // earliest time of the next measurement
}

// processWakeups returns the process's wakeupTimer, or nil if there is no poller. The first call starts the
// measurements.
var processWakeups = sync.OnceValue(func() *wakeupTimer {
	p, err := processPoller()
	if err != nil {
		return nil
	}
	w := new(wakeupTimer)
	w.watch = &watch{poller: p, fd: -1, onDue: w.onTimer}
	w.start()
	return w
})

// start makes the timer expire after the duration wakeupAfter.
func (w *wakeupTimer) start() { w.dueAt.Store(int64(w.watch.scheduleCall(wakeupAfter))) }

// onTimer records a measurement.
func (w *wakeupTimer) onTimer(bool) time.Duration {
	late := Clock() - time.Duration(w.dueAt.Load())
	// While a caller polls, no thread needs to be woken up, so the measurement does not count.
	if pollingCallers.Load() == 0 && w.add(late) {
		w.start()
	}
	return 0
}

// wakeupCost returns the cost of a wake-up on this host.
func wakeupCost() time.Duration {
	if w := processWakeups(); w != nil {
		return w.cost()
	}
	return unknownWakeup
}

// measureWakeups starts a measurement if wakeupInterval has passed since the last one. Callers that are about
// to sleep call it.
func measureWakeups() {
	w := processWakeups()
	if w == nil {
		return
	}
	now := int64(Clock())
	if next := w.next.Load(); now >= next && w.next.CompareAndSwap(next, now+int64(wakeupInterval)) {
		w.start()
	}
}

package progress

import (
	"sync"
	"sync/atomic"
	"time"
)

// wakeupTimer measures how late the process's poller is woken by its timer: that is as much work for the system as a packet
// is that arrives for a process that sleeps.
type wakeupTimer struct {
	wakeups
	watch *watch       // of no descriptor
	due   atomic.Int64 // when the timer expires
	next  atomic.Int64 // when it may be started again
}

// processWakeups is the process's. It is nil if there is no poller, and measures from the first use on.
var processWakeups = sync.OnceValue(func() *wakeupTimer {
	p, err := process()
	if err != nil {
		return nil
	}
	w := new(wakeupTimer)
	w.watch = &watch{p: p, fd: -1, due: w.expired}
	w.start()
	return w
})

// start has the timer expire after wakeupAfter.
func (w *wakeupTimer) start() { w.due.Store(int64(w.watch.after(wakeupAfter))) }

// expired measures.
func (w *wakeupTimer) expired(bool) time.Duration {
	late := Clock() - time.Duration(w.due.Load())
	// While a caller polls, no thread has to be woken.
	if polling.Load() == 0 && w.add(late) {
		w.start()
	}
	return 0
}

// wakeupCost returns what a wake-up costs on this host.
func wakeupCost() time.Duration {
	if w := processWakeups(); w != nil {
		return w.cost()
	}
	return unknownWakeup
}

// measureWakeups measures again if it is time for that. It is called by callers that are about to sleep.
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

package progress

import (
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/internal/poller"
)

// wakeupTimer measures how late the process's poller is woken by a timer: that is as much work for
// the system as a packet is that arrives for a process that sleeps.
type wakeupTimer struct {
	wakeups
	arming sync.Mutex
	fd     int
	watch  *poller.Watch
	due    atomic.Int64 // when the timer expires, on the monotonic clock in nanoseconds
	next   atomic.Int64 // when it may be started again, as time since begun
}

// processWakeups is the process's. It is nil if the system has no timer, and measures from the first
// use on.
var processWakeups = sync.OnceValue(func() *wakeupTimer {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil
	}
	w := &wakeupTimer{fd: fd}
	if w.watch, err = poller.Add(fd, w); err != nil {
		unix.Close(fd)
		return nil
	}
	w.start()
	return w
})

func monotonic() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // Linux has this clock
	return t.Nano()
}

// start has the timer expire after wakeupAfter.
func (w *wakeupTimer) start() {
	w.arming.Lock()
	defer w.arming.Unlock()
	due := monotonic() + int64(wakeupAfter)
	w.due.Store(due)
	when := unix.ItimerSpec{Value: unix.NsecToTimespec(due)}
	if unix.TimerfdSettime(w.fd, unix.TFD_TIMER_ABSTIME, &when, nil) == nil { // which forgets earlier ones
		_ = w.watch.Arm() // or it is not measured
	}
}

// Ready implements poller.Handler.
func (w *wakeupTimer) Ready() time.Duration {
	late := monotonic() - w.due.Load()
	// While a caller polls, no thread has to be woken.
	if polling.Load() == 0 && w.add(time.Duration(late)) {
		w.start()
	}
	return 0
}

// PollAgain implements poller.Handler.
func (w *wakeupTimer) PollAgain() time.Duration { return 0 }

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
	now := int64(time.Since(begun))
	if next := w.next.Load(); now >= next && w.next.CompareAndSwap(next, now+int64(wakeupInterval)) {
		w.start()
	}
}

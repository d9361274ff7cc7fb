package bench

import (
	"math"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// clockRoot pairs a reference time for the function time.Since with the reading, at that time, of the clock that all
// processes share.
var clockRoot = sync.OnceValue(func() (root struct {
	at     time.Time
	shared time.Duration
}) {
	// time.Since and unix.ClockGettime read the same clock, so they advance alike. Of 100 attempts to read both, the
	// one with the shortest interval between the two readings is used.
	for least, i := time.Duration(math.MaxInt64), 0; i < 100; i++ {
		var t unix.Timespec
		before := time.Now()
		_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // always supported
		if took := time.Since(before); took < least {
			least, root.at, root.shared = took, before, time.Duration(t.Nano())-took/2
		}
	}
	return root
})

// threadTime returns the processor time used by this thread.
func threadTime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) // always supported
	return time.Duration(t.Nano())
}

// sharedNow returns the time on a clock that all processes on this machine share. The C function bench_now in c/stats.h
// reads the same clock. Neither function makes a system call.
func sharedNow() time.Duration {
	root := clockRoot()
	return root.shared + time.Since(root.at)
}

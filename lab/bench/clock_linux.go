package bench

import (
	"math"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// clockRoot holds a reference time for time.Since, and the reading of the clock shared by all processes at that time.
var clockRoot = sync.OnceValue(func() (root struct {
	at     time.Time
	shared time.Duration
}) {
	// Both functions read the same clock, so they advance alike. Of 100 attempts, the one with the shortest interval
	// between the two readings is used.
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

// sharedNow returns a time on a clock that all processes of this machine share. Its counterpart in C is bench_now in
// c/stats.h. Neither makes a system call.
func sharedNow() time.Duration {
	root := clockRoot()
	return root.shared + time.Since(root.at)
}

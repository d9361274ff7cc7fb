package bench

import (
	"math"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// clockRoot is when time.Since counts from, and what the clock that all processes of this
// machine have in common said then.
var clockRoot = sync.OnceValue(func() (root struct {
	at     time.Time
	shared time.Duration
}) {
	// Both are readings of the same clock, so that they go alike. The two that were
	// closest together count.
	for least, i := time.Duration(math.MaxInt64), 0; i < 100; i++ {
		var t unix.Timespec
		before := time.Now()
		_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // there is one
		if took := time.Since(before); took < least {
			least, root.at, root.shared = took, before, time.Duration(t.Nano())-took/2
		}
	}
	return root
})

// threadTime is the time that this thread has used of a processor.
func threadTime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) // there is one
	return time.Duration(t.Nano())
}

// sharedNow is a time that all processes of this machine have in common; in c/stats.h
// it is bench_now. It is no system call, as it is none there.
func sharedNow() time.Duration {
	root := clockRoot()
	return root.shared + time.Since(root.at)
}

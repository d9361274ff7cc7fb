package bench

import (
	"time"

	"golang.org/x/sys/unix"
)

// sharedNow is a time that all processes of this machine have in common; in c/stats.h
// it is bench_now.
func sharedNow() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // there is one
	return time.Duration(t.Nano())
}

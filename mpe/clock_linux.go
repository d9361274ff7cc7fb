package mpe

import "golang.org/x/sys/unix"

// processorClock returns the time on the clock that C code reads, in nanoseconds.
func processorClock() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // cannot fail
	return t.Nano()
}

//go:build !linux

package bench

import "time"

// threadTime returns the elapsed time, as an approximation of the processor time used by this thread.
func threadTime() time.Duration { return sharedNow() }

// sharedNow returns a time on a clock that all processes of this machine share.
func sharedNow() time.Duration { return time.Duration(time.Now().UnixNano()) }

//go:build !linux

package bench

import "time"

// threadTime approximates the processor time used by this thread by elapsed time.
func threadTime() time.Duration { return sharedNow() }

// sharedNow returns a time that all processes of this machine share.
func sharedNow() time.Duration { return time.Duration(time.Now().UnixNano()) }

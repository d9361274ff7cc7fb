//go:build !linux

package bench

import "time"

// threadTime is a time that goes on while this thread runs.
func threadTime() time.Duration { return sharedNow() }

// sharedNow is a time that all processes of this machine have in common.
func sharedNow() time.Duration { return time.Duration(time.Now().UnixNano()) }

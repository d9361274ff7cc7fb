//go:build !linux

package bench

import "time"

// sharedNow is a time that all processes of this machine have in common.
func sharedNow() time.Duration { return time.Duration(time.Now().UnixNano()) }

//go:build cgo

package main

import "runtime"

// leastProcessors is the least that Go's scheduler is given. A caller that polls would have to let other goroutines run
// all the time, and a thread of the program gives its place to another thread for that, which takes microseconds.
const leastProcessors = 2

// A launcher that binds a process to one processor leaves one to Go's scheduler as well.
func init() {
	if runtime.GOMAXPROCS(0) < leastProcessors {
		runtime.GOMAXPROCS(leastProcessors)
	}
}

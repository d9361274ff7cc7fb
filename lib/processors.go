package main

import "runtime"

// A launcher that binds a process to one processor leaves one to Go's scheduler as well. A caller that polls would have to let other goroutines run
// all the time, and a thread of the program gives its place to another thread for that, which takes microseconds.
func init() {
	const least = 2
	if runtime.GOMAXPROCS(0) < least {
		runtime.GOMAXPROCS(least)
	}
}

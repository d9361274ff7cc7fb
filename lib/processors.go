//go:build cgo

package main

import "runtime"

// leastProcessors is the minimum number of processors for Go's scheduler. With one processor, a caller that polls would
// have to yield to other goroutines all the time, and a thread of the program would hand over to another thread for
// that, which takes microseconds.
const leastProcessors = 2

// A launcher that binds a process to one processor also restricts Go's scheduler to one.
func init() {
	if runtime.GOMAXPROCS(0) < leastProcessors {
		runtime.GOMAXPROCS(leastProcessors)
	}
}

//go:build cgo

package main

import "runtime"

// leastProcessors is the minimum number of processors for Go's scheduler. With only one, a caller that polls
// would have to yield to other goroutines all the time. For each yield, the program's thread would hand over to
// another thread, which takes microseconds.
const leastProcessors = 2

// If a launcher has bound the process to one processor, Go's scheduler would also use only one.
func init() {
	if runtime.GOMAXPROCS(0) < leastProcessors {
		runtime.GOMAXPROCS(leastProcessors)
	}
}

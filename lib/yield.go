package main

import (
	"sync/atomic"
	"time"
)

// yields says when a call goes through the scheduler of Go, although nothing else has to run.
//
// A thread of the program is one goroutine to Go, which enters Go for each call and leaves it, and is never scheduled anew
// unless a call waits for long. After 10 ms of that, the runtime takes the goroutine for one that does not end: its monitor
// takes the processor from it whenever it computes, and wakes every 20 to 60 µs for that, which interrupts the program's
// computation. Each next call has to find another one, and wakes the monitor. A goroutine that yields more often than every 10 ms
// is left alone.
type yields struct {
	calls atomic.Uint32
	last  atomic.Int64
}

const (
	// yieldAfter is how long after one yield there is another.
	yieldAfter = 4 * time.Millisecond
	// clockEvery is in how many calls the clock is read, which takes 30 ns.
	clockEvery = 8
)

// due reports whether a call that ends is to yield. now is the time since some time.
func (y *yields) due(now func() time.Duration) bool {
	if y.calls.Add(1)%clockEvery != 0 {
		return false
	}
	t, last := int64(now()), y.last.Load()
	return t-last >= int64(yieldAfter) && y.last.CompareAndSwap(last, t)
}

// Package progress lets callers poll for the events that they wait for.
//
// Being woken up by the kernel takes longer than most messages do. A waiting caller therefore polls as long as
// this is likely to be better than being woken up, and then sleeps. While no caller polls, the first event
// wakes up the process's poller, a single goroutine that waits for all descriptors without occupying a thread.
// A Group contains the sources of one owner, such as the transports of an engine. Each source has a Driver,
// which determines the goroutine that owns the right to poll it.
//
// The package decides when, for how long and on which goroutine to poll. It knows nothing about the sources.
//
// If a wait ends while its caller polls, the package must never allocate, take a lock or read the clock for it.
// It must never occupy a core that is needed by the goroutines that callers wait for, and never let a caller
// sleep if its source is neither polled nor watched by a goroutine.
package progress

// Package progress has callers that wait for something poll for it.
//
// To be woken by the kernel takes longer than most messages do. So a caller that
// waits polls, for as long as that is likely to be better than to be woken, and then
// sleeps. While no caller polls, the process's poller is woken by the first thing that
// arrives: one goroutine, which waits for all descriptors and holds no thread. A Group has the sources of one owner, such as the transports of an engine;
// each has a Driver, which says which goroutine owns the right to poll it.
//
// The package knows when to poll, for how long and which goroutine does, and nothing of what is polled.
//
// It must never allocate, take a lock or ask the clock for a wait that ends while its caller polls, keep a core from
// the goroutines that are waited for, or let a caller sleep whose source no goroutine polls or watches.
package progress

// Package progress lets callers poll for the events that they wait for.
//
// Being woken up by the kernel takes longer than most messages. So a waiting caller polls, for as long as this is
// likely to be better than being woken up, and then sleeps. While no caller polls, the first event wakes up the
// process's poller: one goroutine, which waits for all descriptors and holds no thread. A Group has the sources of
// one owner, such as the transports of an engine; each source has a Driver, which determines the goroutine that owns
// the right to poll it.
//
// The package decides when to poll, for how long and on which goroutine. It knows nothing about the sources.
//
// It must never allocate, take a lock or read the clock for a wait that ends while its caller polls, occupy a core
// that the awaited goroutines need, or let a caller sleep whose source no goroutine polls or watches.
package progress

// Package drive has whoever waits for something carry it himself.
//
// To be woken by the kernel takes longer than most messages do. So a caller that
// waits looks for what arrives, for as long as that is likely to be better than
// to be woken, and sleeps then. While nobody looks, the process's poller is woken
// by the first thing that arrives. A Group has the sources of one waiter, such as
// the transports of an engine; each has a Driver, which says whose turn it is to
// poll it.
//
// It is for those who poll: it knows when, for how long and who, and nothing of
// what is polled.
//
// It must never allocate, take a lock or ask the clock for a wait that ends while
// its caller looks, keep a core from those who are waited for, or leave anybody
// asleep whose source nobody looks at.
package progress

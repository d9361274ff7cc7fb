// Package daemon assembles a running zrlmpid from a configuration: the rank map, the sockets of every local
// rank, an engine for each, the kernels of stand-ins, the control socket and the log.
//
// Everything is bound before anything runs: a ready daemon is reachable at each of its addresses, and one that
// cannot bind an address releases the others and returns an error with advice. The package contains no
// protocol.
//
// A reload takes effect as a whole, or not at all if a part of it needs a restart (Reload).
//
// The packet path must never wait for the log: the Observer queues lines, and counts those that it drops
// because the queue is full.
package daemon

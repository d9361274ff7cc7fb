// Package daemon assembles a running zrlmpid from a configuration: the rank map,
// the sockets of every local rank, an engine for each, the kernels of stand-ins,
// the control socket and the log.
//
// Everything is bound before anything runs: a daemon that is ready can be reached at each
// of its addresses, and one that cannot bind an address releases the others and returns an
// error that says what to do. The package contains no protocol.
//
// A reload takes effect as a whole, or not at all if a part of it needs a restart (Reload).
//
// The packet path must never wait for the log: the Observer queues its lines, and counts
// those for which the queue has no room.
package daemon

// Package daemon builds and runs zrlmpid from a configuration: the rank map, the sockets and engine of every
// local rank, the kernels of stand-ins, the control socket and the log.
//
// The daemon binds all of its addresses before it runs anything, so a ready daemon is reachable at every
// address. If one address cannot be bound, the daemon releases the others and returns an error with advice. The
// package contains no protocol code.
//
// A reload (see Reload) applies the whole configuration, or none of it if any part needs a restart.
//
// The packet path must never wait for the log: the Observer queues log lines, and drops and counts lines that do not
// fit in the queue.
package daemon

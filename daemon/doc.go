// Package daemon assembles a running zrlmpid from a configuration: the rank map,
// the sockets of every local rank, an engine for each, the kernels of stand-ins,
// the control socket and the log.
//
// Everything is bound before anything runs: a daemon that is ready can be talked
// to at each of its addresses, and one that cannot have an address releases the
// others and says what to do. The package holds no protocol of its own. What a
// configuration says is turned into what the packages below it take in link.go,
// and nowhere else.
//
// A running daemon goes by another configuration if all of it can be had without a
// restart (Reload), and otherwise by nothing of it. What cannot fail is done last.
//
// The packet path must never wait for the log: the Observer hands its lines over
// by a bounded queue, and counts those that it has no room for.
package daemon

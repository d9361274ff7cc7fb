// Package impair decides what befalls packets on an impaired network: a Script of rules,
// and an Impairer that applies them to one packet after the other.
//
//	loss 5% duplicate 1%
//	from 2 to 0 packet ACK nth 3 loss 100%
//	after 10s for 5s partition
//
// A rule is a line of words: which packets it is for, and which faults they meet. Rules act
// in the order of the script, each on what the rules before it have let through.
// docs/impair.md describes every word.
//
// The package is pure: it has no goroutine, clock, socket or global randomness. Decisions
// depend on the seed of the script, and on the packets of the same direction before. Package
// relay applies them on real sockets, package udp on the socket of a stand-in.
package impair

// Package impair decides the fate of packets on an impaired network: a Script of rules, and an Impairer that applies
// them to each packet in turn.
//
//	loss 5% duplicate 1%
//	from 2 to 0 packet ACK nth 3 loss 100%
//	after 10s for 5s partition
//
// A rule is a line of words: the packets it selects, and the faults to apply to them. Rules are applied in the order of
// the script, each to the packets that the rules before it let through. docs/impair.md describes every word.
//
// The package is pure: it uses no goroutine, clock, socket or global randomness. Decisions depend only on the seed of
// the script, and on the earlier packets of the same direction. Package relay applies them on real sockets, package udp
// on the socket of a stand-in.
package impair

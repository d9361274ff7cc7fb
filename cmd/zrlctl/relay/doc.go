// Package relay puts an impaired network between ranks that use real sockets. For each rank, the relay has an address
// that the other ranks use instead of the rank's real address. The relay identifies the sender of a packet by its
// source address, and forwards the packet to the rank that the destination address represents, from the address that
// represents the sender. Each rank thus sees all others at the addresses in its rank map. FPGAs and upstream's CPU
// library only need a different rank map.
//
// Package impair decides the fate of each packet; this package provides the sockets and the clock. It must never
// interpret more of a packet than its type, and never change a packet except for a bit that the Impairer has chosen.
//
// plan.go assigns addresses to ranks and creates configurations; relay.go opens and closes a relay; datagrams.go relays
// UDP; streams.go accepts and dials TCP connections; pipe.go relays one direction of a connection; splitter.go finds
// the packets in it.
package relay

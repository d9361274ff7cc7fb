// Package relay puts an impaired network between ranks on real sockets. Each rank has an address of the relay that the
// other ranks use instead of its real address. The relay identifies the sender of a packet by its source address, and
// forwards the packet to the rank that the address stands for, from the address that stands for the sender. Each rank
// thus sees all others where its rank map has them, and FPGAs and upstream's CPU library need no change except for
// another rank map.
//
// Package impair decides the fate of each packet; this package has the sockets and the clock. It must never interpret
// more of a packet than its type, and never change a packet except for the bit chosen by the Impairer.
//
// plan.go assigns addresses to ranks and makes configurations; relay.go opens and closes a relay; datagrams.go relays
// UDP; streams.go accepts and dials TCP; pipe.go is one direction of a connection; splitter.go finds the packets in it.
package relay

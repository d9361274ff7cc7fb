// Package relay puts an impaired network between ranks on real sockets. For each rank it has
// an address that the other ranks use in the place of the rank's own: what arrives there is
// from the rank that has its source address, and is passed on to the rank that the address
// stands for, from the address that stands for its sender. So each rank sees all others
// where its rank map has them, and FPGAs and upstream's CPU library need nothing but another
// rank map.
//
// Package impair decides what befalls each packet; this package has the sockets and the
// clock. It must never interpret more of a packet than its type, and never change one but for
// the bit that the Impairer has chosen.
//
// The files: plan.go gives ranks their addresses and makes configurations; relay.go opens and
// closes; datagrams.go relays UDP; streams.go accepts and dials TCP, pipe.go is one direction
// of a connection, and splitter.go finds the packets in it.
package relay

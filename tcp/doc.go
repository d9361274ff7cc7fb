// Package tcp carries the packets of one rank over TCP, between ranks of
// zrlmpid: upstream has no TCP, so the rules are ours.
//
// Every pair of software ranks has one connection. The lower rank dials it, from
// the start and for ever, with back-off; the higher rank accepts. So either side
// can be the first to have something to send, and no two connections cross. The
// dialer binds its rank's own IP, and the acceptor tells by that IP who it is:
// nothing is said on a connection but the packets themselves, framed as in
// package protocol. Ranks on TCP therefore need an IP each.
//
// What is lost with a connection stays lost: the package repeats nothing, and
// says by an mpe.ArrivedConnected that the handshake has to. It must never buffer
// without a bound: a reader that finds its queue full stops reading, and TCP
// stops the peer.
//
// The files: conn.go opens and closes; dial.go and accept.go make connections;
// link.go is one connection, from the moment it replaces its predecessor; read.go
// takes packets off it, queue.go keeps them, recv.go hands them out; send.go puts
// packets on.
package tcp

// Package tcp carries the packets of one rank over TCP, between ranks of
// zrlmpid: upstream has no TCP, so the rules are ours.
//
// Every pair of software ranks has one connection. The lower rank dials it, from
// the start and forever, with back-off; the higher rank accepts. So either side
// can be the first to have something to send, and no two connections cross. The
// dialer binds its rank's own IP, and the acceptor identifies it by that IP:
// nothing is said on a connection but the packets themselves, framed as in
// package protocol. Ranks on TCP therefore need an IP each.
//
// With TLS, both sides of a connection show a certificate, which must be signed
// by the configured authority and bear that IP. Until then nothing of the
// connection is accepted: it replaces none, and others are not kept waiting.
//
// What is lost with a connection stays lost: the package retransmits nothing, and
// says by an mpe.RxConnected that the handshake has to. It must never buffer
// without a bound: a reader that finds its queue full stops reading, and TCP
// stops the peer. Packets of the extended profile, which are retransmitted until they
// are acknowledged, do not wait for a peer to take them: those that do not fit into
// the outbox of its connection are lost.
//
// There are two ways to carry packets. On Linux, where all peers are of the extended
// profile and without TLS, a Conn is an mpe.PollTransport: the goroutine that waits for packets
// reads them off the connections itself, and the goroutine that sends writes them there, with
// no goroutine in between and without Go's network poller. What arrives is given out
// where it was read to, or read to where it belongs, and only what the kernel has no room
// for is copied to wait.
// Otherwise each connection has a goroutine that reads, and, in the extended profile,
// one that writes.
//
// The files: conn.go opens and closes; dial.go and accept.go make connections, and
// secure.go those with TLS, whose credentials are tls.go's; link.go is one
// connection, from the moment it replaces its predecessor; packets.go puts packets
// of the extended profile on, and send.go others. With goroutines, read.go takes
// packets off a link, queue.go keeps them, recv.go hands them out, and outbox.go is
// what waits to be written. Without, poll_linux.go polls for packets, which reader.go
// separates, and direct_linux.go reads payload to where it belongs; inbox_linux.go adds and removes links, sleep_linux.go waits;
// wire_linux.go is a link's descriptor, and write_linux.go writes to it. blocks.go
// is memory for what waits, either way.
package tcp

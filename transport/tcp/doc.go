// Package tcp carries the packets of one rank over TCP, between ranks of zrlmpid. Upstream has no TCP, so the
// rules are ours.
//
// Every pair of software ranks has one connection. The lower rank dials it, from the start and forever, with
// back-off; the higher rank accepts. So either side can be the first to send, and no two connections cross. The
// dialer binds its rank's own IP, and the acceptor identifies it by that IP: a connection carries nothing but
// the packets, framed as in package protocol. Ranks on TCP therefore need an IP each.
//
// With TLS, both sides of a connection present a certificate, which must be signed by the configured authority
// and bear that IP. Until the handshake is complete nothing is accepted from the connection: it replaces no
// other, and delays no other.
//
// Data lost with a connection stays lost: the package does not retransmit, and reports by an mpe.RxConnected
// that the handshake has to. Buffers are always bounded: a reader that finds its queue full stops reading, and
// TCP stops the peer. Packets of the extended profile, which are retransmitted until they are acknowledged,
// never wait for a slow peer: packets that do not fit in the outbox of its connection are lost.
//
// There are two ways to carry packets. On Linux, if all peers use the extended profile without TLS, a Conn is
// an mpe.PollTransport: the goroutine that waits for packets reads them from the connections itself, and the
// goroutine that sends writes them, with no goroutine in between and without Go's network poller. Received
// packets are returned from the buffer that they were read into, or their payload is read directly to its
// destination; only data that the kernel's send buffer cannot take is copied to a queue. Otherwise each
// connection has a goroutine that reads and, in the extended profile, one that writes.
//
// The files: conn.go opens and closes; dial.go and accept.go make connections, secure.go those with TLS, with
// the credentials of tls.go; link.go is one connection, from the moment it replaces its predecessor; packets.go
// sends packets of the extended profile, and send.go all others. With goroutines, read.go reads packets from a
// link, queue.go stores them, recv.go returns them, and outbox.go queues packets to be written. Without,
// poll_linux.go polls for packets, which reader.go separates, and direct_linux.go places payload directly;
// inbox_linux.go adds and removes links, sleep_linux.go waits, wire_linux.go is a link's descriptor, and
// write_linux.go writes to it. blocks.go is the memory of queued data, either way.
package tcp

// Package tcp carries the packets of one rank over TCP, between ranks of zrlmpid. Upstream has no TCP, so the rules are
// our own.
//
// Each pair of software ranks has one connection. The lower rank dials it when it starts, and redials with back-off
// whenever it is lost; the higher rank accepts it. Either side can therefore be the first to send, and two connections
// never cross. The dialer binds its rank's own IP, and the acceptor identifies it by that IP, so a connection carries
// nothing but packets, framed as in package protocol. Each rank on TCP therefore needs its own IP.
//
// With TLS, both sides of a connection present a certificate, which must be signed by the configured authority and
// contain the rank's IP. Until its handshake is complete, a connection delivers no data, replaces no other connection,
// and delays none.
//
// The package does not retransmit data lost with a connection. It reports the new connection by an mpe.RxConnected, so
// that the handshake can retransmit the data. All buffers are bounded: a reader whose queue is full stops reading, and
// TCP's flow control then stops the peer. Packets of the extended profile never wait for a slow peer, because they are
// retransmitted until they are acknowledged: packets that do not fit in a connection's outbox are dropped.
//
// There are two ways to carry packets. On Linux, if all peers use the extended profile without TLS, a Conn is an
// mpe.PollTransport: the goroutine that waits for packets reads them from the connections itself, and the goroutine
// that sends packets writes them, with no goroutine in between and without Go's network poller. Received packets are
// returned from the buffer that they were read into, or their payload is read directly to its destination. Only data
// that does not fit in the kernel's send buffer is copied to a queue. Otherwise each connection has a goroutine that
// reads and, in the extended profile, one that writes.
//
// The files: conn.go opens and closes a Conn. dial.go and accept.go make connections; secure.go adds TLS, with the
// credentials from tls.go. link.go is one connection, from the moment it replaces its predecessor. packets.go sends
// packets of the extended profile, and send.go sends all others. With goroutines, read.go reads packets from a link,
// queue.go stores them, recv.go returns them, and outbox.go queues packets to be written. Without goroutines,
// poll_linux.go polls for packets, reader.go separates them, and direct_linux.go places payload directly;
// inbox_linux.go adds and removes links, sleep_linux.go waits, wire_linux.go is a link's descriptor, and write_linux.go
// writes to it. blocks.go holds queued data in both cases.
package tcp

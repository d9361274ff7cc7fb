// Package udp carries the packets of one rank over UDP, as deployed nodes do. Its socket is bound to the rank's own
// IP address and port. It fragments a DATA message into datagrams, of which only the first has a header.
//
// The package fragments, pads, paces and sends messages, and reports from which rank a datagram came. It must never
// interpret a received datagram: only the engine knows the state of the pair, which is needed to distinguish a header
// from payload that resembles one. The package keeps no state between two datagrams, and never retransmits.
//
// Overview of the files: conn.go opens the socket. send.go fragments a message into datagrams, and pace.go spaces them.
// packets.go sends packets of the extended profile, one per datagram. recv.go resolves the sender of a received
// datagram. Below them, socket.go defines the interface to the operating system, and its capabilities. plain_socket.go
// implements it on any system. mmsg_linux.go and mmsg_recv_linux.go move many datagrams per system call;
// offload_linux.go makes the kernel segment long pieces into datagrams and coalesce received ones. send_mode_linux.go
// controls fragmentation by IP and asks the kernel for the path MTU. direct_linux.go receives payload into its
// final buffer. offload.go reports which offload features are in use, and disables them on request. impair.go is a
// socket that injects faults, for tests. path.go defines a way past the kernel's socket, which package xdp implements,
// and path_linux.go is a socket that uses both.
package udp

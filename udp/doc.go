// Package udp carries the packets of one rank over UDP, as deployed nodes do:
// bound to the rank's own IP and port, a DATA message fragmented into datagrams of
// which only the first has a header.
//
// It fragments, pads, paces and sends, and reports which rank a datagram came from. It
// must never interpret a datagram that arrived: only the pair's state, which the
// engine has, distinguishes a header from payload that resembles one. It keeps nothing
// between two datagrams and retransmits none of its own accord.
//
// The files: conn.go opens the socket; send.go fragments a message into datagrams,
// pace.go spaces them; packets.go sends those of the extended profile, each a
// datagram of its own; recv.go names the sender of what arrives. Below them,
// socket.go is what an operating system does for us, as an interface and a value
// that says how much of it: plain.go does it anywhere; mmsg_linux.go
// and mmsg_recv_linux.go many datagrams a system call, of which, by
// offload_linux.go, the kernel segments long pieces into datagrams and puts them
// together again; mode_linux.go keeps it from fragmenting datagrams, and asks it how
// long they may be; direct_linux.go receives payload where it belongs. offload.go says
// how much of this is in use, and has it switched off. impair.go is a socket whose
// datagrams meet faults, for tests.
package udp

// Command paths compares three ways to exchange UDP datagrams with polling processes: UDP sockets, io_uring and AF_XDP.
// It answers whether the engine should use one of the latter for its datagrams, and needs Linux and root:
//
//	go run ./paths --rounds 15 --trips 20000 --json paths.json
//
// A host sends a datagram with 32 bytes of payload, the length of the engine's header, and the peer returns it. Both
// are processes on their own processors, in network namespaces connected by a veth pair. Each round measures all pairs
// of paths in random order, each in new namespaces, which disappear with the processes. Counters of the kernel must
// confirm that every datagram took the path, or the run fails.
//
// The veth devices do not offload checksums, so that all paths compute and verify them in software.
package main

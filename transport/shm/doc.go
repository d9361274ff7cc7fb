// Package shm carries the packets of the extended profile between ranks of one
// host, through memory that they share. Upstream has nothing of the kind: the rules
// are ours.
//
// Every pair of ranks has one link: a piece of memory with a ring for each
// direction. The sender writes a packet into the ring once, and the receiver reads it
// there: nothing else is copied, and while both are awake the kernel has no part in
// it. A receiver that goes to sleep sets a flag in its doorbell, a page that all of its
// peers map; the first of them that writes a packet rings it, an eventfd.
//
// Long payload that stays in the sender's memory (mpe.Packet.Exposed) is not copied into
// the ring: the packet has a descriptor of it, and the receiver has the kernel copy
// it from the sender's memory to where it belongs (process_vm_readv, which MPI
// libraries call cross memory attach). A message that is announced (mpe.Packet.Advertised) is
// advertised in the same way: the receiver may take it before it asks for it. A pipelined Conn
// (Config) exposes nothing else, and takes it only from a peer that does not poll. Both sides try
// when they meet whether the system allows that; else everything goes through the ring.
// Payload whose pages are not resident when it is to be read is read by a
// goroutine that holds no lock, and by that link alone (copier).
//
// Besides, each rank has a shared buffer that its peers map read-only, for collective calls: package
// mpe/collective says what is in it. What a process has published there can be read until another
// process is the rank.
//
// Links are made over Unix sockets, whose names are the ranks' addresses: the lower
// rank calls, and both hand each other descriptors. Neither the sockets nor the
// memory have a file, so that a process that is killed needs no clean-up;
// its peers see the end of the socket. A rank that starts again is called
// again, and what was in the rings of its predecessor is lost, which an
// mpe.RxConnected says. Where no process is the rank after a link has ended, an mpe.RxGone
// says so.
//
// The package must never wait for a peer: what does not fit into a ring is refused.
// Nor must it trust one: whatever the shared memory contains, it reads nothing
// outside the ring and the memory of the peer's process, and ends a link that
// is invalid. Only processes of the same user get as far as that.
//
// The files: ring.go is one direction of a link, link_linux.go the whole of it;
// conn_linux.go opens and closes, dial_linux.go and accept_linux.go make links with
// what hello_linux.go says and memory_linux.go maps; poll_linux.go takes packets out,
// sleep_linux.go waits for them, send_linux.go puts them in; descriptor.go has the
// descriptors of payload, singlecopy_linux.go gets it and remote_linux.go reads it;
// pagemap_linux.go reports whether it is resident, and copier_linux.go waits until it is;
// advert.go and advert_linux.go are the same for messages that are announced; shared_linux.go has the
// shared buffers. On systems other than
// Linux there is conn_other.go, which says so.
package shm

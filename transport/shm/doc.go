// Package shm carries the packets of the extended profile between ranks of one
// host, through memory that they share. Upstream has nothing of the kind: the rules
// are ours.
//
// Every pair of ranks has one link: a piece of memory with a ring for each
// direction. The sender writes a packet into the ring once, and the receiver reads it
// there: nothing else is copied, and while both are awake the kernel has no part in
// it. A receiver that goes to sleep says so in its door, a page that all of its peers
// see; the first of them that has something for it rings its bell, an eventfd.
//
// Long payload that the sender leaves where it is (mpe.Packet.Lent) is not copied into
// the ring but lent: the packet says where it is, and the receiver has the kernel copy
// it from the sender's memory to where it belongs (process_vm_readv, which MPI
// libraries call cross memory attach). A message that is announced (mpe.Packet.Offer) is
// advertised in the same way: the receiver may take it before it asks for it. Both sides try
// when they meet whether the system allows that; else everything goes through the ring.
// Payload that is not in its sender's memory when it is to be read is waited for by a
// goroutine that holds no lock, and by that link alone (copier).
//
// Links are made over Unix sockets, whose names are the ranks' addresses: the lower
// rank calls, and both hand each other descriptors. Neither the sockets nor the
// memory have a file, so that nothing is left behind by a process that was killed;
// that it is gone its peers learn from the socket. A rank that starts again is called
// again, and what was in the rings of its predecessor is lost, which an
// mpe.RxConnected says.
//
// The package must never wait for a peer: what does not fit into a ring is not taken.
// Nor must it trust one: whatever stands in the shared memory, it reads nothing
// outside the ring and the memory of the process it speaks to, and gives a link up that
// is invalid. Only processes of the same user get as far as that.
//
// The files: ring.go is one direction of a link, link_linux.go the whole of it;
// conn_linux.go opens and closes, dial_linux.go and accept_linux.go make links with
// what hello_linux.go says and memory_linux.go maps; poll_linux.go takes packets out,
// sleep_linux.go waits for them, send_linux.go puts them in; loan.go is how payload is
// lent, lend_linux.go fetches it and remote_linux.go reads it; pagemap_linux.go says
// whether it is there, and copier_linux.go waits until it is; offer.go and
// offer_linux.go are the same for messages that are announced. On systems other than
// Linux there is conn_other.go, which says so.
package shm

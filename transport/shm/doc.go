// Package shm carries the packets of the extended profile between ranks on one host, through memory that they share.
// Upstream has no equivalent, so the rules are our own.
//
// Each pair of ranks has one link: a piece of memory with a ring for each direction. The sender writes a packet into
// the ring once, and the receiver reads it there. Nothing else is copied, and while both ranks are awake the kernel is
// not involved. A receiver that goes to sleep sets a flag in its doorbell, a page that all its peers map; the first
// peer that then writes a packet rings the doorbell's bell, an eventfd.
//
// Long payload that remains in the sender's memory (mpe.Packet.Exposed) is not copied into the ring. Its packet
// contains a descriptor instead, and the receiver copies the payload from the sender's memory to its destination
// (process_vm_readv, which MPI libraries call cross memory attach). An announced message (mpe.Packet.Advertised) is
// advertised in the same way: the receiver may copy it instead of requesting it. A pipelined Conn (see Config) uses
// single copies only between far processors (see distance), and for messages advertised by a peer that does not poll.
// When two ranks connect, both test whether the system allows single copies; if not, all payload goes through the ring.
// If pages of the payload are not resident, a goroutine that holds no lock reads it, and only its link waits (see
// copier).
//
// Each rank also has a shared buffer for collective calls, which its peers map read-only; package mpe/collective
// defines its contents. Data that a process has published in its buffer can be read until another process takes over
// the rank.
//
// Links are made over Unix sockets, which are named after the ranks' addresses or, in a job, after their numbers. The
// lower rank calls, and both exchange descriptors. The shared memory has no file, and a socket left behind by a killed
// process is removed later, so a crash needs no clean-up: the peers see the end of the connection. A rank that restarts
// is called again. Data in its predecessor's rings is lost, and Poll reports the new link as an mpe.RxConnected. If no
// process has the rank after its link ended, Poll reports an mpe.RxPeerDied.
//
// The package must never wait for a peer: packets that do not fit in a ring are rejected. Nor must it trust one:
// whatever the shared memory contains, the package reads nothing outside the ring and the memory of the peer's process,
// and it ends an invalid link. Only processes of the same user can connect.
//
// The files: ring.go is one direction of a link, and link_linux.go the whole link. conn_linux.go opens and closes a
// Conn. socket_dir_linux.go creates the rank's socket and finds the peers' sockets. dial_linux.go and accept_linux.go
// make links, with the messages of hello_linux.go and the memory of memory_linux.go; refusal_linux.go reports limits
// that prevent a link. poll_linux.go reads packets, sleep_linux.go waits for them, and send_linux.go writes them.
// descriptor.go defines the descriptors of payload, singlecopy_linux.go fetches payload, remote_memory_linux.go reads
// it, and distance.go decides between ring and single copy. pagemap_linux.go checks whether payload is resident, and
// copier_linux.go waits until it is. advert.go and advert_linux.go do the same for announced messages.
// shared_buffers_linux.go manages the shared buffers. On other systems, conn_other.go reports that shared memory is not
// supported.
package shm

// Package shm carries the packets of the extended profile between ranks of one host, through memory that they
// share. Upstream has no equivalent: the rules are ours.
//
// Every pair of ranks has one link: a piece of memory with a ring for each direction. The sender writes a
// packet into the ring once, and the receiver reads it there: nothing else is copied, and while both are awake
// the kernel is not involved. A receiver that goes to sleep sets a flag in its doorbell, a page that all its
// peers map; the first of them that writes a packet rings the doorbell's bell, an eventfd.
//
// Long payload that stays in the sender's memory (mpe.Packet.Exposed) is not copied into the ring: the packet
// has a descriptor of it, and the receiver copies it from the sender's memory to its destination
// (process_vm_readv, which MPI libraries call cross memory attach). An announced message
// (mpe.Packet.Advertised) is advertised in the same way: the receiver may copy it before it requests it. A
// pipelined Conn (Config) exposes nothing else, and copies such a message only from a peer that does not poll.
// When they connect, both sides test whether the system allows single copies; otherwise all payload goes
// through the ring. If pages of the payload are not resident, a goroutine that holds no lock reads it, and only
// its link waits (copier).
//
// Each rank also has a shared buffer for collective calls, which its peers map read-only; package
// mpe/collective defines its contents. Data that a process has published there can be read until another
// process is the rank.
//
// Links are made over Unix sockets, named for the ranks' addresses or, in a job, their numbers: the lower rank
// calls, and both exchange descriptors. Shared memory has no file, and a socket left by a killed process is
// removed later, so that a crash needs no clean-up; the peers see the end of the connection. A rank that starts
// again is called again. Data in the rings of its predecessor is lost, which an mpe.RxConnected reports. If no
// process is the rank after a link has ended, an mpe.RxGone reports it.
//
// The package must never wait for a peer: packets that do not fit in a ring are rejected. Nor must it trust
// one: whatever the shared memory contains, it reads nothing outside the ring and the memory of the peer's
// process, and ends an invalid link. Only processes of the same user can connect.
//
// The files: ring.go is one direction of a link, link_linux.go the whole; conn_linux.go opens and closes;
// meeting_linux.go finds the peers' sockets; dial_linux.go and accept_linux.go make links with the messages of
// hello_linux.go and the memory of memory_linux.go, limit_linux.go reports the limits that prevent one;
// poll_linux.go reads packets, sleep_linux.go waits for them, send_linux.go writes them; descriptor.go has the
// descriptors of payload, singlecopy_linux.go fetches payload, remote_linux.go reads it and distance.go decides
// between ring and single copy; pagemap_linux.go checks whether payload is resident, and copier_linux.go waits
// until it is; advert.go and advert_linux.go are the same for announced messages; shared_linux.go has the
// shared buffers. On other systems conn_other.go reports that there is none.
package shm

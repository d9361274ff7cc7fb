package mpi

import (
	"unsafe"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/lease"
	"github.com/zrlmpi/zrlmpid/mpi/datatype"
)

// Lease leases a Block to the C library after a completed call on c, if the device can. l is memory for the request.
// handle is c's handle in C, and sequence is memory for the number of c's last collective call. peer is the rank of the
// message's peer in c, or a negative number, and shape holds the arguments of a collective call, or is nil.
func (foreign) Lease(c *Comm, b *lease.Block, l *mpe.LeaseRequest, handle uint64, sequence *uint32, peer int,
	shape *lease.Shape) bool {
	lessor, ok := c.proc.dev.(mpe.Lessor)
	if !ok || c.remote != nil || c.freed.Load() || c.callSequence.matchByOrder || len(c.members) > lease.MaxRanks {
		return false
	}
	*l = mpe.LeaseRequest{Handle: handle, Sequence: uint64(uintptr(unsafe.Pointer(sequence))), Comm: c.number,
		CallComm: c.number | internalFlag, Rank: c.rank, Members: c.group.ranks, Peer: -1, Shape: shape}
	if peer >= 0 && peer < len(c.members) && peer != c.rank {
		l.Peer = int(c.members[peer].worldRank)
	}
	c.callSequence.lease(sequence)
	return lessor.Lease(b, l)
}

// lease moves the number of the last call to memory that C code can access.
func (s *callSequence) lease(sequence *uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leased == nil {
		*sequence, s.leased = s.lastNumber, sequence
	}
}

// TakeBack ends the current lease. c is any communicator of the rank.
func (foreign) TakeBack(c *Comm, b *lease.Block) {
	if lessor, ok := c.proc.dev.(mpe.Lessor); ok {
		lessor.Forget(b, 0)
	}
}

// EndLeases ends the use of a communicator in a Block, and of the memory passed to Lease.
func (foreign) EndLeases(c *Comm, b *lease.Block, handle uint64) {
	if lessor, ok := c.proc.dev.(mpe.Lessor); ok {
		lessor.Forget(b, handle)
	}
	s := &c.callSequence
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leased != nil {
		s.lastNumber, s.leased = *s.leased, nil
	}
}

// WireDatatype returns the number of the datatype that represents t on the wire.
func (foreign) WireDatatype(t *datatype.Type) uint32 {
	d, _ := wireDatatype(t)
	return uint32(d)
}

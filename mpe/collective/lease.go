package collective

import (
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
	"github.com/zrlmpi/zrlmpid/mpe/lease"
)

// This file leases the shared buffers of a communicator to C code, which then executes short calls by the algorithms
// named shared. If C code leaves a call unfinished, the executor executes it under the same number, and so publishes
// the same data again.

// BufferLessor is a SharedBuffers whose slots C code can use.
type BufferLessor interface {
	// LeaseSlots provides the addresses of the members' slots. They remain mapped until ReturnSlots, which must be
	// called if and only if LeaseSlots returns true.
	LeaseSlots(slot int, members []int, to *lease.Sharing) bool
	ReturnSlots(members []int)
}

// leasedCalls lists the collectives that C code can execute, by their numbers in C.
var leasedCalls = [...]coll.Collective{lease.Barrier: coll.Barrier, lease.Bcast: coll.Bcast, lease.Reduce: coll.Reduce,
	lease.Allreduce: coll.Allreduce, lease.Allgather: coll.Allgather, lease.Alltoall: coll.Alltoall}

// Leased returns the collective of a shape.
func Leased(shape *lease.Shape) coll.Collective { return leasedCalls[shape.Call] }

// lastCall describes the last call on shared buffers.
type lastCall struct {
	callID
	collective     coll.Collective
	inPlace        bool
	op             op.Op
	elem           op.Type
	bytes, segment int
	root           int
	algorithm      *coll.Algorithm
}

// Busy reports whether a call is in progress.
func (e *Executor) Busy() bool { return len(e.calls) > 0 || e.Pending() }

// leasable returns the sharing of a communicator if C code can use it.
func (e *Executor) leasable(comm uint32) *sharing {
	a := e.agreements[comm]
	if a == nil || !a.done || a.freed || len(a.aborts) > 0 || a.sharing == nil {
		return nil
	}
	s := a.sharing
	// The first two calls have to wait until all buffers exist.
	if s.freed || len(s.queue) > 0 || len(s.lost) > 0 || s.posted < 2 || len(s.members) > lease.MaxMembers {
		return nil
	}
	return s
}

// Describe describes the last call in a communicator. It returns false if C code cannot make calls like it.
func (e *Executor) Describe(comm uint32, shape *lease.Shape) bool {
	s := e.leasable(comm)
	if s == nil || s.lastTag != e.agreements[comm].lastCall { // the last call used no shared buffers
		return false
	}
	last, blocks := &s.last, 1
	if last.collective == coll.Allgather || last.collective == coll.Alltoall {
		blocks = len(s.members)
	}
	number := shape.Call
	if last.algorithm == nil || last.collective != Leased(shape) || last.algorithm.Name != "shared" || last.inPlace ||
		last.bytes > lease.MaxPayload || last.bytes*blocks > s.half || last.bytes == 0 && number != lease.Barrier ||
		last.segment > 0 && last.segment < last.bytes ||
		(number == lease.Reduce || number == lease.Allreduce) && !lease.CanReduce(last.op, last.elem) {
		return false
	}
	shape.Bytes, shape.Root = uint32(last.bytes), uint32(last.root)
	shape.Elem, shape.Reduction = uint32(last.elem), uint32(last.op)
	shape.Digest, shape.Description = uint32(last.digest), uint64(last.description)
	return true
}

// Lease leases the shared buffers of a communicator to C code.
func (e *Executor) Lease(comm uint32, to *lease.Sharing) bool {
	s := e.leasable(comm)
	if s == nil {
		return false
	}
	buffers, ok := s.buffers.(BufferLessor)
	if !ok || !buffers.LeaseSlots(s.slot, s.members, to) {
		return false
	}
	to.Self, to.Members, to.Used, to.LastTag = uint32(s.self), uint32(len(s.members)), 0, uint32(s.lastTag)
	to.Epoch, to.Posted, to.Half = s.epoch, s.posted, uint64(s.half)
	copy(to.LastSeen[:], s.lastSeen)
	for half := range to.Digests {
		id := &s.lastCalls[half]
		to.Digests[half], to.Descriptions[half] = id.digest, uint64(id.description)
	}
	return true
}

// Return ends the use of a communicator's shared buffers by C code.
func (e *Executor) Return(comm uint32, from *lease.Sharing) {
	a := e.agreements[comm]
	s := a.sharing
	s.buffers.(BufferLessor).ReturnSlots(s.members)
	if from.Used == 0 {
		return
	}
	a.lastCall = int(from.LastTag)
	s.last = lastCall{} // the shape of a call in C is known already
	s.posted, s.lastTag = from.Posted, int(from.LastTag)
	copy(s.lastSeen, from.LastSeen[:])
	for half := range from.Digests {
		s.lastCalls[half] = callID{from.Digests[half], callWord(from.Descriptions[half])}
	}
}

// Replay counts and records a call that C code has made.
func (e *Executor) Replay(comm uint32, tag int, shape *lease.Shape) {
	s := e.agreements[comm].sharing
	call := leasedCalls[shape.Call]
	x := &e.replayed
	x.executor = e
	x.Call.Collective, x.Call.Bytes, x.Call.Root, x.Call.Vector = call, int(shape.Bytes), int(shape.Root), false
	x.Members, x.Comm, x.Tag, x.algorithm = s.members, comm, tag, coll.Named(call, "shared")
	x.count()
	e.recordEnd(x, nil)
}

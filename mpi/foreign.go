package mpi

import (
	"context"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpi/datatype"
)

// Foreign is reserved for this module's C library. It handles memory and functions of another language, and
// calls whose arguments the C library has already checked. Go programs do not need it.
var Foreign foreign

type foreign struct{}

// MemoryBuffer returns a buffer of count elements of a datatype. Displacement 0 is at the address at; if at is nil,
// displacements are addresses (MPI_BOTTOM). The caller must ensure that the elements are within its memory.
func (foreign) MemoryBuffer(at unsafe.Pointer, count int64, t *datatype.Type) Buffer {
	return Buffer{base: at, count: count, datatype: t, length: unknownLength}
}

// MemoryBlocks returns blocks relative to an address. The caller must ensure that they are within its memory.
// It may reuse the slice after the call that uses the blocks has returned.
func (foreign) MemoryBlocks(at unsafe.Pointer, blocks []Block) Blocks {
	return Blocks{base: at, blocks: blocks, length: unknownLength}
}

// OpOf returns an operation for buffers of derived datatypes. f must set each of count elements of inout to in
// ∘ inout, as described for the function OpOf. in and inout point to displacement 0 of the first elements. All
// ranks must pass the same datatype. If f fails, the call fails too.
func (foreign) OpOf(f func(in, inout unsafe.Pointer, count int, t *datatype.Type) error, commute bool) Op {
	if f == nil {
		return Op{}
	}
	return Op{typedFunc: f, ordered: !commute}
}

// AwaitAny waits until one of the requests is done, and returns its index, or Undefined if none is active. The caller
// must still wait for that request. If ctx is done first, all requests are cancelled, as by Waitany. If another
// goroutine waits for one of the requests, AwaitAny returns the index of that request immediately.
func (foreign) AwaitAny(ctx context.Context, requests []Request) int { return awaitAny(ctx, requests) }

// AwaitAll waits until all requests are done, or until one has failed because its peer, such as an FPGA in a
// dead end, cannot continue. It reports whether all are done; the caller must still wait for them. If ctx is
// done first, all requests are cancelled, as by Waitall.
func (foreign) AwaitAll(ctx context.Context, requests []Request) bool {
	return awaitAll(ctx, requests, false)
}

// RefuseCollective notifies the other members that the caller does not make a collective call on c, because an argument
// that only the caller has checked is invalid. The call counts as made, like a call that a method of c rejects:
// the calls of the other members fail with an error of the given class, provided that the device can notify
// them and the wire of every member supports communicators.
func (foreign) RefuseCollective(c *Comm, of coll.Collective, class Class) {
	c.rejectCollective(of, class)
}

// RefuseCreation is like RefuseCollective, for a call that makes a communicator of all members of c, such as Split.
// Methods of c that reject such a call notify the other members in the same way.
func (foreign) RefuseCreation(c *Comm, class Class) { c.rejectCreation(class) }

// OutOfRange encodes a negative rank or tag n, so that calls do not mistake it for a constant of this package. They
// reject the encoded value, and their errors show n.
func (foreign) OutOfRange(n int) int { return outOfRangeOffset + n }

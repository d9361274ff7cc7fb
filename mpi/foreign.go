package mpi

import (
	"context"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpi/datatype"
)

// Foreign is reserved for the C library of this module. It handles memory and functions of another language, and calls
// whose arguments that library has checked itself. Go programs do not need it.
var Foreign foreign

type foreign struct{}

// Memory returns a buffer of count elements of a datatype, whose displacement 0 is at an address. The caller must
// ensure that the elements are within its memory. With a nil address, displacements are addresses (MPI_BOTTOM).
func (foreign) Memory(at unsafe.Pointer, count int64, t *datatype.Type) Buffer {
	return Buffer{at: at, count: count, of: t, length: unknownLength}
}

// MemoryBlocks returns blocks relative to an address. The caller must ensure that they are within its memory. The
// caller may reuse the slice after the call has returned.
func (foreign) MemoryBlocks(at unsafe.Pointer, blocks []Block) Blocks {
	return Blocks{at: at, of: blocks, length: unknownLength}
}

// OpOf returns an operation for buffers of derived datatypes. Its function must set each of count elements of inout to
// in ∘ inout, as described for the function OpOf. Displacement 0 of the first elements is at in and inout. All ranks
// must pass the same datatype. If the function fails, so does the call.
func (foreign) OpOf(f func(in, inout unsafe.Pointer, count int, t *datatype.Type) error, commute bool) Op {
	if f == nil {
		return Op{}
	}
	return Op{typed: f, ordered: !commute}
}

// Await waits until one of the requests is done, and returns its index, or Undefined if none is active. The request
// must still be waited for. If ctx is done first, all requests are cancelled, as by Waitany. If another goroutine waits
// for one of the requests, Await returns the index of that request at once.
func (foreign) Await(ctx context.Context, requests []Request) int { return awaitAny(ctx, requests) }

// AwaitAll waits until all requests are done, or one has failed because its peer cannot continue, such as an FPGA in a
// dead end. It reports whether all are done; they must still be waited for. If ctx is done first, all requests are
// cancelled, as by Waitall.
func (foreign) AwaitAll(ctx context.Context, requests []Request) bool {
	return awaitAll(ctx, requests, false)
}

// Refuse notifies the other members that the caller does not make a collective call of c, because an argument that this
// package has not seen is invalid. Like a call that a method of c rejects, it counts as made: the calls of the other
// members fail with an error of the class, provided that the device can notify them and the wire of every member
// carries communicators.
func (foreign) Refuse(c *Comm, of coll.Collective, class Class) { c.refuseCall(of, class) }

// RefuseMaking is Refuse for a call that makes a communicator of all members of c, such as Split. Calls that a method
// of c rejects do the same.
func (foreign) RefuseMaking(c *Comm, class Class) { c.refuseMake(class) }

// Outside encodes a negative rank or tag that is none of the program's constants, although n may be a constant of this
// package. Calls reject it, and their errors show n.
func (foreign) Outside(n int) int { return outside + n }

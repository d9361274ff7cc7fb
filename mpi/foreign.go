package mpi

import (
	"context"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpi/datatype"
)

// Foreign is for the C library of this module alone: memory and functions of another language, and calls of which it
// has checked arguments itself. Programs in Go do not need it.
var Foreign foreign

type foreign struct{}

// Memory is a buffer of count elements of a datatype, displacement 0 of the first of which is at an address: the caller
// alone knows that the elements are within its memory. With a nil address, displacements are addresses (MPI_BOTTOM).
func (foreign) Memory(at unsafe.Pointer, count int64, t *datatype.Type) Buffer {
	return Buffer{at: at, count: count, of: t, length: unknownLength}
}

// MemoryBlocks has blocks at an address: the caller alone knows that they are within its memory. The slice is the
// caller's again when the call has returned.
func (foreign) MemoryBlocks(at unsafe.Pointer, blocks []Block) Blocks {
	return Blocks{at: at, of: blocks, length: unknownLength}
}

// OpOf returns an operation of a function on buffers of derived datatypes: it is to set each of
// count elements of inout to in ∘ inout, as the function OpOf says. Displacement 0 of the first elements is at in and
// inout. All ranks must give the same datatype. Its error ends the call.
func (foreign) OpOf(f func(in, inout unsafe.Pointer, count int, t *datatype.Type) error, commute bool) Op {
	if f == nil {
		return Op{}
	}
	return Op{typed: f, ordered: !commute}
}

// Await waits until one of the requests has ended, and gives its index, or Undefined if none is active. The
// request stays as it is, to be waited for. When ctx ends first, all of them are cancelled, as by Waitany. If another
// goroutine waits for one of them, it returns the index of that one at once.
func (foreign) Await(ctx context.Context, requests []Request) int { return awaitAny(ctx, requests) }

// AwaitAll waits until all of the requests have ended, or one has failed because its peer does not go on: an FPGA in a
// dead end, for instance. It reports whether all have ended, and leaves them to be waited for. When ctx ends
// first, all of them are cancelled, as by Waitall.
func (foreign) AwaitAll(ctx context.Context, requests []Request) bool {
	return awaitAll(ctx, requests, false)
}

// Refuse is a collective call of c that the caller does not make, because an argument of a class is wrong that this
// package has not seen. Like a call that a method of c refuses it counts as made: the other members' calls end with an
// error of that class, if the device can notify them and c has no members whose wire carries no communicators.
func (foreign) Refuse(c *Comm, of coll.Collective, class Class) { c.refuseCall(of, class) }

// RefuseMaking is Refuse for a call that makes a communicator of all members of c: Split and those like it. Calls that
// a method of c refuses do the same.
func (foreign) RefuseMaking(c *Comm, class Class) { c.refuseMake(class) }

// Outside stands for a negative rank or tag that the program has given, and that is none of its constants: here the
// number may be one. Calls refuse it, and their errors say n.
func (foreign) Outside(n int) int { return outside + n }

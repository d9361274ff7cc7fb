package mpi

import (
	"context"
	"slices"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// Alltoall sends a block of send to each rank of c: block j of rank i's send becomes block i of rank j's recv. All
// blocks must have the same length. If a rank passes the same slice as send and recv, it sends the contents of recv.
func Alltoall[T Element](ctx context.Context, c *Comm, send, recv []T, opts ...Option) error {
	return c.Alltoall(ctx, bufferOf(send), bufferOf(recv), opts...)
}

// Ialltoall starts Alltoall and returns.
func Ialltoall[T Element](c *Comm, send, recv []T, opts ...Option) (Request, error) {
	return c.Ialltoall(bufferOf(send), bufferOf(recv), opts...)
}

// Alltoallv is Alltoall for blocks that may differ in length. It sends sendcounts[i] elements to rank i, from send at
// senddispls[i], and receives recvcounts[i] elements from rank i, into recv at recvdispls[i]. If a slice of
// displacements is nil, the blocks are stored consecutively. The block that rank i sends to rank j must be as long as
// rank j expects.
//
// If a rank passes the same slice as send and recv, it sends the contents of recv in the same blocks. It must then pass
// the same counts and displacements for both, or nil for sendcounts and senddispls. The call then sends each rank as
// many elements as it receives from that rank.
func Alltoallv[T Element](ctx context.Context, c *Comm, send []T, sendcounts, senddispls []int, recv []T, recvcounts,
	recvdispls []int, opts ...Option) error {
	return c.Alltoallv(ctx, blocksOf(send, sendcounts, senddispls), blocksOf(recv, recvcounts, recvdispls), opts...)
}

// Ialltoallv starts Alltoallv and returns. The caller may reuse counts and displacements as soon as it returns.
func Ialltoallv[T Element](c *Comm, send []T, sendcounts, senddispls []int, recv []T, recvcounts, recvdispls []int,
	opts ...Option) (Request, error) {
	return c.Ialltoallv(blocksOf(send, sendcounts, senddispls), blocksOf(recv, recvcounts, recvdispls), opts...)
}

// Alltoall sends a block of send to each rank: block j of rank i's send becomes block i of rank j's recv. All blocks
// must have the same length.
func (c *Comm) Alltoall(ctx context.Context, send, recv Buffer, opts ...Option) error {
	return c.alltoallCall("Alltoall", &send, &recv, opts).wait(ctx)
}

// Ialltoall starts Alltoall and returns.
func (c *Comm) Ialltoall(send, recv Buffer, opts ...Option) (Request, error) {
	return c.alltoallCall("Ialltoall", &send, &recv, opts).start()
}

// Alltoallv is Alltoall for blocks that may differ in length and datatype (MPI_Alltoallw). send may be InPlaceBlocks.
func (c *Comm) Alltoallv(ctx context.Context, send, recv Blocks, opts ...Option) error {
	return c.alltoallvCall("Alltoallv", &send, &recv, opts).wait(ctx)
}

// Ialltoallv starts Alltoallv and returns.
func (c *Comm) Ialltoallv(send, recv Blocks, opts ...Option) (Request, error) {
	return c.alltoallvCall("Ialltoallv", &send, &recv, opts).start()
}

func (c *Comm) alltoallCall(name string, send, recv *Buffer, opts []Option) preparedCall {
	if c.IsInter() {
		return c.interAlltoall(name, send, recv)
	}
	x := c.newCollective(name, coll.Alltoall, elementOf(send.datatype, recv.datatype), opts)
	from, to := x.bufferPair(send, recv)
	ranks := x.devOp.Call.Ranks
	if n := x.elementCount(from); n%ranks != 0 {
		x.recordError(ErrCount, "send has %d elements, not blocks of equal length for %d ranks", n, ranks)
		return x
	}
	x.setVectors(from, to)
	x.devOp.Call.Bytes = len(from) / ranks
	return x
}

// alltoallvCall prepares the call for all of its forms. It compares the blocks that the rank sends to itself, because
// no message reveals that they differ.
func (c *Comm) alltoallvCall(name string, send, recv *Blocks, opts []Option) preparedCall {
	if c.IsInter() {
		return c.interAlltoallv(name, send, recv)
	}
	x := c.newCollective(name, coll.Alltoall, elementOf(send.firstType(), recv.firstType()), opts)
	to, in := x.contiguousBlocks("recv", recv, send.inPlace, true)
	x.devOp.Recv, x.devOp.Call.Recv = to, in
	if x.err != nil || x.detectInPlace(send, recv) {
		return x
	}
	from, out := x.contiguousBlocks("send", send, true, false)
	if overlaps(from, to) {
		// The blocks of send and recv may be interleaved, and the device processes them in any order. It therefore gets
		// a copy of send.
		x.sentCopies.packed = append(x.sentCopies.packed[:0], from...)
		from = x.sentCopies.packed
	}
	x.devOp.Send, x.devOp.Call.Send = from, out
	if me := c.rank; x.err == nil && out.Sizes[me] != in.Sizes[me] {
		x.recordError(ErrCount, "this rank sends %d elements to itself, but expects %d", out.Sizes[me]/x.elem.size,
			in.Sizes[me]/x.elem.size)
	}
	return x
}

// detectInPlace reports whether the call is in place, with the same blocks for sending and receiving. It
// rejects slices that overlap in any other way.
func (x *collectiveCall) detectInPlace(send, recv *Blocks) bool {
	switch {
	case send.inPlace:
		x.devOp.Call.InPlace = true
	case send.sliceType == nil || recv.sliceType == nil:
	case sameMemory(send.sliceBytes(), recv.sliceBytes()), send.length+recv.length == 0 &&
		send.counts == nil: // empty slices have no address
		if send.counts != nil && !slices.Equal(send.counts, recv.counts) ||
			send.displs != nil && !slices.Equal(send.displs, recv.displs) {
			x.recordError(ErrCount, "send and recv are the same memory, but have different blocks: a call in place "+
				"receives each block into the memory that it was sent from")
		}
		x.devOp.Call.InPlace = true
	case overlaps(send.sliceBytes(), recv.sliceBytes()):
		x.recordOverlap()
	}
	return x.devOp.Call.InPlace || x.err != nil
}

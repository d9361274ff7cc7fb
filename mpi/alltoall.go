package mpi

import (
	"context"
	"slices"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// Alltoall gives each rank of c a block of every rank's send, which has one for each, in
// the order of ranks: what rank i has for rank j becomes block i of rank j's recv. All
// blocks are of the same length. A rank that gives the same slice for both has in recv
// what it sends.
func Alltoall[T Element](ctx context.Context, c *Comm, send, recv []T, opts ...Option) error {
	return newCollective[T](c, "Alltoall", coll.Alltoall, opts).alltoall(view(send), view(recv)).wait(ctx)
}

// Ialltoall starts Alltoall and returns.
func Ialltoall[T Element](c *Comm, send, recv []T, opts ...Option) (Request, error) {
	return newCollective[T](c, "Ialltoall", coll.Alltoall, opts).alltoall(view(send), view(recv)).start()
}

// Alltoallv is Alltoall of blocks that may be of different lengths: sendcounts[i] elements
// go to rank i, and recvcounts[i] come from there; they are in send at senddispls[i] and
// in recv at recvdispls[i], or one block after another where these are nil. What rank i
// has for rank j must be as long as rank j wants of rank i.
//
// A rank that gives the same slice for send and recv has in recv what it sends, in the
// same blocks: it gives the same counts and displacements for both, or nil for
// sendcounts and senddispls. The other ranks must have blocks as long as what it sends
// them.
func Alltoallv[T Element](ctx context.Context, c *Comm, send []T, sendcounts, senddispls []int, recv []T, recvcounts, recvdispls []int, opts ...Option) error {
	return newCollective[T](c, "Alltoallv", coll.Alltoall, opts).
		alltoallv(view(send), sendcounts, senddispls, view(recv), recvcounts, recvdispls).wait(ctx)
}

// Ialltoallv starts Alltoallv and returns. Counts and displacements are the caller's again
// at once.
func Ialltoallv[T Element](c *Comm, send []T, sendcounts, senddispls []int, recv []T, recvcounts, recvdispls []int, opts ...Option) (Request, error) {
	return newCollective[T](c, "Ialltoallv", coll.Alltoall, opts).
		alltoallv(view(send), sendcounts, senddispls, view(recv), recvcounts, recvdispls).start()
}

// Alltoall gives each rank a block of every rank's send, which has one for each, all of one length: block j of rank i
// becomes block i of rank j's recv.
func (c *Comm) Alltoall(ctx context.Context, send, recv Buffer, opts ...Option) error {
	return c.alltoallCall("Alltoall", &send, &recv, opts).wait(ctx)
}

// Ialltoall starts Alltoall and returns.
func (c *Comm) Ialltoall(send, recv Buffer, opts ...Option) (Request, error) {
	return c.alltoallCall("Ialltoall", &send, &recv, opts).start()
}

// Alltoallv is Alltoall of blocks that may be of different lengths, and of different datatypes (MPI_Alltoallw). send may be
// InPlaceBlocks.
func (c *Comm) Alltoallv(ctx context.Context, send, recv Blocks, opts ...Option) error {
	return c.alltoallvCall("Alltoallv", &send, &recv, opts).wait(ctx)
}

// Ialltoallv starts Alltoallv and returns.
func (c *Comm) Ialltoallv(send, recv Blocks, opts ...Option) (Request, error) {
	return c.alltoallvCall("Ialltoallv", &send, &recv, opts).start()
}

func (x *collectiveCall) alltoall(send, recv []byte) *collectiveCall {
	ranks := x.dev.Call.Ranks
	if n := x.count(send); n%ranks != 0 {
		x.refuse(ErrCount, "send has %d elements, which are no blocks of one length for %d ranks", n, ranks)
		return x
	}
	x.dev.Call.Bytes = len(send) / ranks
	x.vectors(send, recv)
	return x
}

func (x *collectiveCall) alltoallv(send []byte, sendcounts, senddispls []int, recv []byte, recvcounts, recvdispls []int) *collectiveCall {
	c := &x.dev.Call
	if c.Recv = x.layout("recv", recv, recvcounts, recvdispls, true); x.err != nil {
		return x
	}
	switch empty := len(send)+len(recv) == 0; {
	case same(send, recv), empty && sendcounts == nil: // empty slices may or may not be the same memory
		if sendcounts != nil && !slices.Equal(sendcounts, recvcounts) || senddispls != nil && !slices.Equal(senddispls, recvdispls) {
			x.refuse(ErrCount, "send and recv are the same memory, with different blocks: in place, what is sent lies where what is received goes")
		}
		c.InPlace = true
		x.dev.Recv = recv
		return x
	case overlap(send, recv):
		x.refuseOverlap()
		return x
	}
	x.exchange(send, recv, x.layout("send", send, sendcounts, senddispls, false))
	return x
}

// exchange takes the buffers of a call that is not in place, and the blocks that are sent.
func (x *collectiveCall) exchange(send, recv []byte, l coll.Layout) {
	c := &x.dev.Call
	x.dev.Send, x.dev.Recv, c.Send = send, recv, l
	if me := c.Rank; x.err == nil && l.Sizes[me] != c.Recv.Sizes[me] {
		x.refuse(ErrCount, "this rank sends itself %d elements, and wants %d", l.Sizes[me]/x.elem.size, c.Recv.Sizes[me]/x.elem.size)
	}
}

func (c *Comm) alltoallCall(name string, send, recv *Buffer, opts []Option) begun {
	if c.IsInter() {
		return c.interAlltoall(name, send, recv)
	}
	return c.collective(name, coll.Alltoall, typedBy(send.of, recv.of), opts).alltoallTyped(send, recv)
}

func (c *Comm) alltoallvCall(name string, send, recv *Blocks, opts []Option) begun {
	if c.IsInter() {
		return c.interAlltoallv(name, send, recv)
	}
	return c.collective(name, coll.Alltoall, typedBy(send.first(), recv.first()), opts).alltoallvTyped(send, recv)
}

func (x *collectiveCall) alltoallTyped(send, recv *Buffer) *collectiveCall {
	return x.alltoall(x.both(send, recv))
}

func (x *collectiveCall) alltoallvTyped(send, recv *Blocks) *collectiveCall {
	c := &x.dev.Call
	to, l := x.blocks("recv", recv, send.inPlace, true)
	c.Recv = l
	if send.inPlace {
		c.InPlace, x.dev.Recv = true, to
		return x
	}
	from, l := x.blocks("send", send, true, false)
	if overlap(from, to) {
		// Blocks of both may lie between each other: what is written decides, which the device does in any order.
		x.sent.packed = append(x.sent.packed[:0], from...)
		from = x.sent.packed
	}
	x.exchange(from, to, l)
	return x
}

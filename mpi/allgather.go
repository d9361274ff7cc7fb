package mpi

import (
	"context"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// Allgather concatenates the send slices of all ranks of c, in rank order, into recv of every rank. All send slices
// must have the same length. A rank may pass its own block of recv as send.
func Allgather[T Element](ctx context.Context, c *Comm, send, recv []T, opts ...Option) error {
	return c.Allgather(ctx, bufferOf(send), bufferOf(recv), opts...)
}

// Iallgather starts Allgather and returns.
func Iallgather[T Element](c *Comm, send, recv []T, opts ...Option) (Request, error) {
	return c.Iallgather(bufferOf(send), bufferOf(recv), opts...)
}

// Allgatherv is Allgather for blocks that may differ in length. Rank i contributes counts[i] elements, which
// are stored in recv at displs[i]. If displs is nil, the blocks are stored consecutively. All ranks pass the
// same counts; displs may differ.
func Allgatherv[T Element](ctx context.Context, c *Comm, send, recv []T, counts, displs []int, opts ...Option) error {
	return c.Allgatherv(ctx, bufferOf(send), blocksOf(recv, counts, displs), opts...)
}

// Iallgatherv starts Allgatherv and returns. The caller may reuse counts and displs as soon as it returns.
func Iallgatherv[T Element](c *Comm, send, recv []T, counts, displs []int, opts ...Option) (Request, error) {
	return c.Iallgatherv(bufferOf(send), blocksOf(recv, counts, displs), opts...)
}

// Allgather concatenates the send buffers of all ranks, in rank order, into recv of every rank.
func (c *Comm) Allgather(ctx context.Context, send, recv Buffer, opts ...Option) error {
	return c.allgatherCall("Allgather", &send, &recv, opts).wait(ctx)
}

// Iallgather starts Allgather and returns.
func (c *Comm) Iallgather(send, recv Buffer, opts ...Option) (Request, error) {
	return c.allgatherCall("Iallgather", &send, &recv, opts).start()
}

// Allgatherv is Allgather for blocks that may differ in length.
func (c *Comm) Allgatherv(ctx context.Context, send Buffer, recv Blocks, opts ...Option) error {
	return c.allgathervCall("Allgatherv", &send, &recv, opts).wait(ctx)
}

// Iallgatherv starts Allgatherv and returns.
func (c *Comm) Iallgatherv(send Buffer, recv Blocks, opts ...Option) (Request, error) {
	return c.allgathervCall("Iallgatherv", &send, &recv, opts).start()
}

func (c *Comm) allgatherCall(name string, send, recv *Buffer, opts []Option) preparedCall {
	if c.IsInter() {
		return c.interAllgather(name, send, recv, nil)
	}
	x := c.newCollective(name, coll.Allgather, elementOf(send.datatype, recv.datatype), opts)
	x.setGather(send, recv)
	return x
}

func (c *Comm) allgathervCall(name string, send *Buffer, recv *Blocks, opts []Option) preparedCall {
	if c.IsInter() {
		return c.interAllgather(name, send, nil, recv)
	}
	x := c.newCollective(name, coll.Allgather, elementOf(send.datatype, recv.firstType()), opts)
	x.setGatherv(send, recv)
	return x
}

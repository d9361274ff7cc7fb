package mpi

import (
	"context"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// Allgather gives all ranks of c what each of them has in send, in the order of ranks:
// recv is as long as all of them together. send is as long on all. A rank may give its own
// block of recv as send.
func Allgather[T Element](ctx context.Context, c *Comm, send, recv []T, opts ...Option) error {
	return c.Allgather(ctx, bufferOf(send), bufferOf(recv), opts...)
}

// Iallgather starts Allgather and returns.
func Iallgather[T Element](c *Comm, send, recv []T, opts ...Option) (Request, error) {
	return c.Iallgather(bufferOf(send), bufferOf(recv), opts...)
}

// Allgatherv is Allgather of blocks that may be of different lengths: rank i gives
// counts[i] elements, which go to recv at displs[i], or one block after another if displs
// is nil. All ranks give the same counts; displs may differ.
func Allgatherv[T Element](ctx context.Context, c *Comm, send, recv []T, counts, displs []int, opts ...Option) error {
	return c.Allgatherv(ctx, bufferOf(send), blocksOf(recv, counts, displs), opts...)
}

// Iallgatherv starts Allgatherv and returns. counts and displs are the caller's again at
// once.
func Iallgatherv[T Element](c *Comm, send, recv []T, counts, displs []int, opts ...Option) (Request, error) {
	return c.Iallgatherv(bufferOf(send), blocksOf(recv, counts, displs), opts...)
}

// Allgather gives all ranks what each of them has in send, in the order of ranks: recv has as many elements as
// all of them together.
func (c *Comm) Allgather(ctx context.Context, send, recv Buffer, opts ...Option) error {
	return c.allgatherCall("Allgather", &send, &recv, opts).wait(ctx)
}

// Iallgather starts Allgather and returns.
func (c *Comm) Iallgather(send, recv Buffer, opts ...Option) (Request, error) {
	return c.allgatherCall("Iallgather", &send, &recv, opts).start()
}

// Allgatherv is Allgather of blocks that may be of different lengths.
func (c *Comm) Allgatherv(ctx context.Context, send Buffer, recv Blocks, opts ...Option) error {
	return c.allgathervCall("Allgatherv", &send, &recv, opts).wait(ctx)
}

// Iallgatherv starts Allgatherv and returns.
func (c *Comm) Iallgatherv(send Buffer, recv Blocks, opts ...Option) (Request, error) {
	return c.allgathervCall("Iallgatherv", &send, &recv, opts).start()
}

func (c *Comm) allgatherCall(name string, send, recv *Buffer, opts []Option) begun {
	if c.IsInter() {
		return c.interAllgather(name, send, recv, nil)
	}
	x := c.collective(name, coll.Allgather, typedBy(send.of, recv.of), opts)
	x.collect(send, recv)
	return x
}

func (c *Comm) allgathervCall(name string, send *Buffer, recv *Blocks, opts []Option) begun {
	if c.IsInter() {
		return c.interAllgather(name, send, nil, recv)
	}
	x := c.collective(name, coll.Allgather, typedBy(send.of, recv.first()), opts)
	x.collectv(send, recv)
	return x
}

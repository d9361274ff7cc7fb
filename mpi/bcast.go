package mpi

import (
	"context"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// Bcast copies root's buf to the buf of every rank of c. All these slices must have the same length.
func Bcast[T Element](ctx context.Context, c *Comm, buf []T, root int, opts ...Option) error {
	return c.Bcast(ctx, bufferOf(buf), root, opts...)
}

// Ibcast starts Bcast and returns.
func Ibcast[T Element](c *Comm, buf []T, root int, opts ...Option) (Request, error) {
	return c.Ibcast(bufferOf(buf), root, opts...)
}

// Bcast copies root's buffer to the buffer of every rank. All buffers must have the same number of bytes.
func (c *Comm) Bcast(ctx context.Context, b Buffer, root int, opts ...Option) error {
	return c.bcastCall("Bcast", &b, root, opts).wait(ctx)
}

// Ibcast starts Bcast and returns.
func (c *Comm) Ibcast(b Buffer, root int, opts ...Option) (Request, error) {
	return c.bcastCall("Ibcast", &b, root, opts).start()
}

func (c *Comm) bcastCall(name string, buffer *Buffer, root int, opts []Option) preparedCall {
	if c.IsInter() {
		return c.interBcast(name, buffer, root)
	}
	x := c.newCollective(name, coll.Bcast, elementOf(buffer.datatype, nil), opts)
	isRoot := x.setRoot(root)
	buf := x.contiguousBytes(buffer, isRoot, !isRoot)
	x.devOp.Recv, x.devOp.Call.Bytes = buf, len(buf)
	return x
}

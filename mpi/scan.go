package mpi

import (
	"context"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// Scan combines the send slices of ranks 0 up to the calling rank, element by element, into recv. All slices must have
// the same length. If a rank passes the same slice as send and recv, the slice holds the rank's contribution.
func Scan[T Element](ctx context.Context, c *Comm, send, recv []T, op Op, opts ...Option) error {
	return c.Scan(ctx, bufferOf(send), bufferOf(recv), op, opts...)
}

// Iscan starts Scan and returns.
func Iscan[T Element](c *Comm, send, recv []T, op Op, opts ...Option) (Request, error) {
	return c.Iscan(bufferOf(send), bufferOf(recv), op, opts...)
}

// Exscan is Scan without the calling rank's own contribution. On rank 0, recv is undefined afterwards.
func Exscan[T Element](ctx context.Context, c *Comm, send, recv []T, op Op, opts ...Option) error {
	return c.Exscan(ctx, bufferOf(send), bufferOf(recv), op, opts...)
}

// Iexscan starts Exscan and returns.
func Iexscan[T Element](c *Comm, send, recv []T, op Op, opts ...Option) (Request, error) {
	return c.Iexscan(bufferOf(send), bufferOf(recv), op, opts...)
}

// Scan combines the send buffers of ranks 0 up to the calling rank, element by element, into recv.
func (c *Comm) Scan(ctx context.Context, send, recv Buffer, op Op, opts ...Option) error {
	return c.scanCall("Scan", coll.Scan, &send, &recv, op, opts).wait(ctx)
}

// Iscan starts Scan and returns.
func (c *Comm) Iscan(send, recv Buffer, op Op, opts ...Option) (Request, error) {
	return c.scanCall("Iscan", coll.Scan, &send, &recv, op, opts).start()
}

// Exscan is Scan without the calling rank's own contribution. On rank 0, recv is undefined afterwards.
func (c *Comm) Exscan(ctx context.Context, send, recv Buffer, op Op, opts ...Option) error {
	return c.scanCall("Exscan", coll.Exscan, &send, &recv, op, opts).wait(ctx)
}

// Iexscan starts Exscan and returns.
func (c *Comm) Iexscan(send, recv Buffer, op Op, opts ...Option) (Request, error) {
	return c.scanCall("Iexscan", coll.Exscan, &send, &recv, op, opts).start()
}

func (c *Comm) scanCall(name string, kind coll.Collective, send, recv *Buffer, op Op, opts []Option) *collectiveCall {
	return c.newCollective(name, kind, elementOf(send.datatype, recv.datatype), opts).setReduction(send, recv, op)
}

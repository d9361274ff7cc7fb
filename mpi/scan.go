package mpi

import (
	"context"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// Scan gives each rank of c the send buffers of the ranks up to itself, combined element
// by element. All buffers are of the same length. A rank that gives the same slice for
// both has its contribution in recv.
func Scan[T Element](ctx context.Context, c *Comm, send, recv []T, op Op, opts ...Option) error {
	return c.Scan(ctx, bufferOf(send), bufferOf(recv), op, opts...)
}

// Iscan starts Scan and returns.
func Iscan[T Element](c *Comm, send, recv []T, op Op, opts ...Option) (Request, error) {
	return c.Iscan(bufferOf(send), bufferOf(recv), op, opts...)
}

// Exscan is Scan without the rank's own contribution. recv of rank 0 is undefined
// afterwards.
func Exscan[T Element](ctx context.Context, c *Comm, send, recv []T, op Op, opts ...Option) error {
	return c.Exscan(ctx, bufferOf(send), bufferOf(recv), op, opts...)
}

// Iexscan starts Exscan and returns.
func Iexscan[T Element](c *Comm, send, recv []T, op Op, opts ...Option) (Request, error) {
	return c.Iexscan(bufferOf(send), bufferOf(recv), op, opts...)
}

// Scan gives each rank the send buffers of the ranks up to itself, combined element by element.
func (c *Comm) Scan(ctx context.Context, send, recv Buffer, op Op, opts ...Option) error {
	return c.scanCall("Scan", coll.Scan, &send, &recv, op, opts).wait(ctx)
}

// Iscan starts Scan and returns.
func (c *Comm) Iscan(send, recv Buffer, op Op, opts ...Option) (Request, error) {
	return c.scanCall("Iscan", coll.Scan, &send, &recv, op, opts).start()
}

// Exscan is Scan without the rank's own contribution. recv of rank 0 is undefined afterwards.
func (c *Comm) Exscan(ctx context.Context, send, recv Buffer, op Op, opts ...Option) error {
	return c.scanCall("Exscan", coll.Exscan, &send, &recv, op, opts).wait(ctx)
}

// Iexscan starts Exscan and returns.
func (c *Comm) Iexscan(send, recv Buffer, op Op, opts ...Option) (Request, error) {
	return c.scanCall("Iexscan", coll.Exscan, &send, &recv, op, opts).start()
}

func (c *Comm) scanCall(name string, kind coll.Collective, send, recv *Buffer, op Op, opts []Option) *collectiveCall {
	return c.collective(name, kind, typedBy(send.of, recv.of), opts).combine(send, recv, op)
}

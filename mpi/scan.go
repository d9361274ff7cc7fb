package mpi

import (
	"context"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// Scan gives each rank of c the send buffers of the ranks up to itself, combined element
// by element. All buffers are of the same length. A rank that gives the same slice for
// both has its contribution in recv.
func Scan[T Element](ctx context.Context, c *Comm, send, recv []T, op Op, opts ...Option) error {
	return newCollective[T](c, "Scan", coll.Scan, opts).toAll(view(send), view(recv), op).wait(ctx)
}

// Iscan starts Scan and returns.
func Iscan[T Element](c *Comm, send, recv []T, op Op, opts ...Option) (Request, error) {
	return newCollective[T](c, "Iscan", coll.Scan, opts).toAll(view(send), view(recv), op).start()
}

// Exscan is Scan without the rank's own contribution. recv of rank 0 is undefined
// afterwards.
func Exscan[T Element](ctx context.Context, c *Comm, send, recv []T, op Op, opts ...Option) error {
	return newCollective[T](c, "Exscan", coll.Exscan, opts).toAll(view(send), view(recv), op).wait(ctx)
}

// Iexscan starts Exscan and returns.
func Iexscan[T Element](c *Comm, send, recv []T, op Op, opts ...Option) (Request, error) {
	return newCollective[T](c, "Iexscan", coll.Exscan, opts).toAll(view(send), view(recv), op).start()
}

// Scan gives each rank the send buffers of the ranks up to itself, combined element by element.
func (c *Comm) Scan(ctx context.Context, send, recv Buffer, op Op, opts ...Option) error {
	return c.collective("Scan", coll.Scan, typedBy(send.of, recv.of), opts).toAllTyped(&send, &recv, op).wait(ctx)
}

// Iscan starts Scan and returns.
func (c *Comm) Iscan(send, recv Buffer, op Op, opts ...Option) (Request, error) {
	return c.collective("Iscan", coll.Scan, typedBy(send.of, recv.of), opts).toAllTyped(&send, &recv, op).start()
}

// Exscan is Scan without the rank's own contribution. recv of rank 0 is undefined afterwards.
func (c *Comm) Exscan(ctx context.Context, send, recv Buffer, op Op, opts ...Option) error {
	return c.collective("Exscan", coll.Exscan, typedBy(send.of, recv.of), opts).toAllTyped(&send, &recv, op).wait(ctx)
}

// Iexscan starts Exscan and returns.
func (c *Comm) Iexscan(send, recv Buffer, op Op, opts ...Option) (Request, error) {
	return c.collective("Iexscan", coll.Exscan, typedBy(send.of, recv.of), opts).toAllTyped(&send, &recv, op).start()
}

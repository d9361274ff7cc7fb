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

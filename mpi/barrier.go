package mpi

import (
	"context"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// Barrier returns when all members of c have called it.
func Barrier(ctx context.Context, c *Comm, opts ...Option) error {
	if c.IsInter() {
		return c.interBarrier("Barrier").wait(ctx)
	}
	return newCollective[int32](c, "Barrier", coll.Barrier, opts).wait(ctx)
}

// Ibarrier starts Barrier and returns. The request ends when all members have called it.
func Ibarrier(c *Comm, opts ...Option) (Request, error) {
	if c.IsInter() {
		return c.interBarrier("Ibarrier").start()
	}
	return newCollective[int32](c, "Ibarrier", coll.Barrier, opts).start()
}

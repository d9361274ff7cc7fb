package mpi

import (
	"context"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// Barrier returns when all members of c have called it.
func Barrier(ctx context.Context, c *Comm, opts ...Option) error {
	return c.barrierCall("Barrier", opts).wait(ctx)
}

// Ibarrier starts Barrier and returns. The request is done when all members have called it.
func Ibarrier(c *Comm, opts ...Option) (Request, error) {
	return c.barrierCall("Ibarrier", opts).start()
}

func (c *Comm) barrierCall(name string, opts []Option) preparedCall {
	if c.IsInter() {
		return c.interBarrier(name)
	}
	return c.newCollective(name, coll.Barrier, elementOf(TypeOf[int32](), nil), opts)
}

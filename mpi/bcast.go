package mpi

import (
	"context"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// Bcast gives all ranks of c what root has in buf, which is as long on all of them.
func Bcast[T Element](ctx context.Context, c *Comm, buf []T, root int, opts ...Option) error {
	return newCollective[T](c, "Bcast", coll.Bcast, opts).bcast(view(buf), root).wait(ctx)
}

// Ibcast starts Bcast and returns.
func Ibcast[T Element](c *Comm, buf []T, root int, opts ...Option) (Request, error) {
	return newCollective[T](c, "Ibcast", coll.Bcast, opts).bcast(view(buf), root).start()
}

func (x *collectiveCall) bcast(buf []byte, root int) *collectiveCall {
	x.atRoot(root)
	x.dev.Recv, x.dev.Call.Bytes = buf, len(buf)
	return x
}

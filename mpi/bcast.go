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

// Bcast gives all ranks what root has in a buffer, of as many bytes on all of them.
func (c *Comm) Bcast(ctx context.Context, b Buffer, root int, opts ...Option) error {
	return c.bcastCall("Bcast", &b, root, opts).wait(ctx)
}

// Ibcast starts Bcast and returns.
func (c *Comm) Ibcast(b Buffer, root int, opts ...Option) (Request, error) {
	return c.bcastCall("Ibcast", &b, root, opts).start()
}

func (x *collectiveCall) bcast(buf []byte, root int) *collectiveCall {
	x.atRoot(root)
	x.dev.Recv, x.dev.Call.Bytes = buf, len(buf)
	return x
}

func (c *Comm) bcastCall(name string, b *Buffer, root int, opts []Option) begun {
	if c.IsInter() {
		return c.interBcast(name, b, root)
	}
	return c.collective(name, coll.Bcast, typedBy(b.of, nil), opts).bcastTyped(b, root)
}

func (x *collectiveCall) bcastTyped(b *Buffer, root int) *collectiveCall {
	isRoot := x.atRoot(root)
	return x.bcast(x.contents(b, isRoot, !isRoot), root)
}

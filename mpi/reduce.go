package mpi

import (
	"context"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// Reduce combines the send buffers of all ranks of c, element by element, into recv of
// root. All buffers are of the same length. recv is ignored on other ranks; root may
// give the same slice for both, and then its contribution is in recv.
func Reduce[T Element](ctx context.Context, c *Comm, send, recv []T, op Op, root int, opts ...Option) error {
	return newCollective[T](c, "Reduce", coll.Reduce, opts).toRoot(view(send), view(recv), op, root).wait(ctx)
}

// Ireduce starts Reduce and returns.
func Ireduce[T Element](c *Comm, send, recv []T, op Op, root int, opts ...Option) (Request, error) {
	return newCollective[T](c, "Ireduce", coll.Reduce, opts).toRoot(view(send), view(recv), op, root).start()
}

// Allreduce combines the send buffers of all ranks of c, element by element, into recv of
// all. All buffers are of the same length. A rank that gives the same slice for both has
// its contribution in recv.
func Allreduce[T Element](ctx context.Context, c *Comm, send, recv []T, op Op, opts ...Option) error {
	return newCollective[T](c, "Allreduce", coll.Allreduce, opts).toAll(view(send), view(recv), op).wait(ctx)
}

// Iallreduce starts Allreduce and returns.
func Iallreduce[T Element](c *Comm, send, recv []T, op Op, opts ...Option) (Request, error) {
	return newCollective[T](c, "Iallreduce", coll.Allreduce, opts).toAll(view(send), view(recv), op).start()
}

// Reduce combines the send buffers of all ranks, element by element, into recv of root.
func (c *Comm) Reduce(ctx context.Context, send, recv Buffer, op Op, root int, opts ...Option) error {
	return c.reduceCall("Reduce", &send, &recv, op, root, opts).wait(ctx)
}

// Ireduce starts Reduce and returns.
func (c *Comm) Ireduce(send, recv Buffer, op Op, root int, opts ...Option) (Request, error) {
	return c.reduceCall("Ireduce", &send, &recv, op, root, opts).start()
}

// Allreduce combines the send buffers of all ranks, element by element, into recv of all.
func (c *Comm) Allreduce(ctx context.Context, send, recv Buffer, op Op, opts ...Option) error {
	return c.allreduceCall("Allreduce", &send, &recv, op, opts).wait(ctx)
}

// Iallreduce starts Allreduce and returns.
func (c *Comm) Iallreduce(send, recv Buffer, op Op, opts ...Option) (Request, error) {
	return c.allreduceCall("Iallreduce", &send, &recv, op, opts).start()
}

func (x *collectiveCall) toRoot(send, recv []byte, op Op, root int) *collectiveCall {
	x.operation(op)
	x.dev.Call.Bytes, x.dev.Send = len(send), send
	if x.atRoot(root) {
		x.vectors(send, recv)
	}
	return x
}

// toAll is for reductions whose result every rank gets, or a result of its own.
func (x *collectiveCall) toAll(send, recv []byte, op Op) *collectiveCall {
	x.operation(op)
	x.dev.Call.Bytes = len(send)
	x.vectors(send, recv)
	return x
}

func (c *Comm) reduceCall(name string, send, recv *Buffer, op Op, root int, opts []Option) begun {
	if c.IsInter() {
		return c.interReduce(name, send, recv, op, root)
	}
	return c.collective(name, coll.Reduce, typedBy(send.of, recv.of), opts).reduceTyped(send, recv, op, root)
}

func (c *Comm) allreduceCall(name string, send, recv *Buffer, op Op, opts []Option) begun {
	if c.IsInter() {
		return c.interAllreduce(name, send, recv, op)
	}
	return c.collective(name, coll.Allreduce, typedBy(send.of, recv.of), opts).toAllTyped(send, recv, op)
}

func (x *collectiveCall) reduceTyped(send, recv *Buffer, op Op, root int) *collectiveCall {
	op = x.typedOperation(op, send, recv)
	if !x.atRoot(root) {
		return x.toRoot(x.contents(send, true, false), nil, op, root)
	}
	from, to := x.both(send, recv)
	return x.toRoot(from, to, op, root)
}

func (x *collectiveCall) toAllTyped(send, recv *Buffer, op Op) *collectiveCall {
	op = x.typedOperation(op, send, recv)
	from, to := x.both(send, recv)
	return x.toAll(from, to, op)
}

package mpi

import (
	"context"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// Reduce combines the send slices of all ranks of c, element by element, into recv of root. All slices must have the
// same length. recv is ignored on other ranks. If root passes the same slice as send and recv, the slice holds root's
// contribution.
func Reduce[T Element](ctx context.Context, c *Comm, send, recv []T, op Op, root int, opts ...Option) error {
	return c.Reduce(ctx, bufferOf(send), bufferOf(recv), op, root, opts...)
}

// Ireduce starts Reduce and returns.
func Ireduce[T Element](c *Comm, send, recv []T, op Op, root int, opts ...Option) (Request, error) {
	return c.Ireduce(bufferOf(send), bufferOf(recv), op, root, opts...)
}

// Allreduce combines the send slices of all ranks of c, element by element, into recv of every rank. All slices must
// have the same length. If a rank passes the same slice as send and recv, the slice holds the rank's contribution.
func Allreduce[T Element](ctx context.Context, c *Comm, send, recv []T, op Op, opts ...Option) error {
	return c.Allreduce(ctx, bufferOf(send), bufferOf(recv), op, opts...)
}

// Iallreduce starts Allreduce and returns.
func Iallreduce[T Element](c *Comm, send, recv []T, op Op, opts ...Option) (Request, error) {
	return c.Iallreduce(bufferOf(send), bufferOf(recv), op, opts...)
}

// Reduce combines the send buffers of all ranks, element by element, into recv of root.
func (c *Comm) Reduce(ctx context.Context, send, recv Buffer, op Op, root int, opts ...Option) error {
	return c.reduceCall("Reduce", &send, &recv, op, root, opts).wait(ctx)
}

// Ireduce starts Reduce and returns.
func (c *Comm) Ireduce(send, recv Buffer, op Op, root int, opts ...Option) (Request, error) {
	return c.reduceCall("Ireduce", &send, &recv, op, root, opts).start()
}

// Allreduce combines the send buffers of all ranks, element by element, into recv of every rank.
func (c *Comm) Allreduce(ctx context.Context, send, recv Buffer, op Op, opts ...Option) error {
	return c.allreduceCall("Allreduce", &send, &recv, op, opts).wait(ctx)
}

// Iallreduce starts Allreduce and returns.
func (c *Comm) Iallreduce(send, recv Buffer, op Op, opts ...Option) (Request, error) {
	return c.allreduceCall("Iallreduce", &send, &recv, op, opts).start()
}

func (c *Comm) reduceCall(name string, send, recv *Buffer, op Op, root int, opts []Option) preparedCall {
	if c.IsInter() {
		return c.interReduce(name, send, recv, op, root)
	}
	x := c.newCollective(name, coll.Reduce, elementOf(send.datatype, recv.datatype), opts)
	if x.setRoot(root) {
		return x.setReduction(send, recv, op)
	}
	x.setSend(send)
	x.setOperation(op, send, recv)
	return x
}

func (c *Comm) allreduceCall(name string, send, recv *Buffer, op Op, opts []Option) preparedCall {
	if c.IsInter() {
		return c.interAllreduce(name, send, recv, op)
	}
	return c.newCollective(name, coll.Allreduce, elementOf(send.datatype, recv.datatype), opts).setReduction(send, recv,
		op)
}

// setReduction sets the buffers of a reduction on a rank that receives its result.
func (x *collectiveCall) setReduction(send, recv *Buffer, op Op) *collectiveCall {
	from, to := x.bufferPair(send, recv)
	x.setOperation(op, send, recv)
	x.setVectors(from, to)
	return x
}

package mpi

import (
	"context"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// ReduceScatter combines the send slices of all ranks of c, element by element, and splits the result into consecutive
// blocks: rank i receives counts[i] elements. All ranks pass the same counts. A rank may pass the beginning of send as
// recv.
func ReduceScatter[T Element](ctx context.Context, c *Comm, send, recv []T, counts []int, op Op, opts ...Option) error {
	return c.ReduceScatter(ctx, bufferOf(send), bufferOf(recv), counts, op, opts...)
}

// IreduceScatter starts ReduceScatter and returns. The caller may reuse counts as soon as it returns.
func IreduceScatter[T Element](c *Comm, send, recv []T, counts []int, op Op, opts ...Option) (Request, error) {
	return c.IreduceScatter(bufferOf(send), bufferOf(recv), counts, op, opts...)
}

// ReduceScatterBlock is ReduceScatter with blocks that all have the same length as recv.
func ReduceScatterBlock[T Element](ctx context.Context, c *Comm, send, recv []T, op Op, opts ...Option) error {
	return c.ReduceScatterBlock(ctx, bufferOf(send), bufferOf(recv), op, opts...)
}

// IreduceScatterBlock starts ReduceScatterBlock and returns.
func IreduceScatterBlock[T Element](c *Comm, send, recv []T, op Op, opts ...Option) (Request, error) {
	return c.IreduceScatterBlock(bufferOf(send), bufferOf(recv), op, opts...)
}

// ReduceScatter combines the send buffers of all ranks, element by element, and splits the result into
// consecutive blocks: rank i receives counts[i] elements. If the call is in place, recv holds the contribution,
// and the result is stored at the beginning of recv.
func (c *Comm) ReduceScatter(ctx context.Context, send, recv Buffer, counts []int, op Op, opts ...Option) error {
	return c.reduceScatterCall("ReduceScatter", &send, &recv, counts, op, opts).wait(ctx)
}

// IreduceScatter starts ReduceScatter and returns.
func (c *Comm) IreduceScatter(send, recv Buffer, counts []int, op Op, opts ...Option) (Request, error) {
	return c.reduceScatterCall("IreduceScatter", &send, &recv, counts, op, opts).start()
}

// ReduceScatterBlock is ReduceScatter with blocks that all have the same length as recv. If the call is in
// place, recv has the length of all blocks together.
func (c *Comm) ReduceScatterBlock(ctx context.Context, send, recv Buffer, op Op, opts ...Option) error {
	return c.reduceScatterBlockCall("ReduceScatterBlock", &send, &recv, op, opts).wait(ctx)
}

// IreduceScatterBlock starts ReduceScatterBlock and returns.
func (c *Comm) IreduceScatterBlock(send, recv Buffer, op Op, opts ...Option) (Request, error) {
	return c.reduceScatterBlockCall("IreduceScatterBlock", &send, &recv, op, opts).start()
}

// setParts sets the buffers of a call whose result is a part of the combined vector. If the call is in place, the
// result is stored at the beginning of the contribution.
func (x *collectiveCall) setParts(send, recv []byte) {
	d := &x.devOp
	d.Send, d.Recv = send, recv
	if x.checkInPlace(recv, send, 0, [2]string{"recv", "send"}) {
		d.Send, d.Recv = nil, send
	}
}

func (c *Comm) reduceScatterCall(name string, send, recv *Buffer, counts []int, op Op, opts []Option) preparedCall {
	if c.IsInter() {
		return c.interReduceScatter(name, send, recv, counts, op)
	}
	x := c.newCollective(name, coll.ReduceScatter, elementOf(send.datatype, recv.datatype), opts)
	from, to := x.bufferPair(send, recv)
	x.setOperation(op, send, recv)
	d := &x.devOp.Call
	if d.Recv = x.blockLayout("send", from, counts, nil, false); x.err != nil {
		return x
	}
	d.Recv.Offsets = nil
	sum := 0
	for _, n := range counts {
		sum += n
	}
	if send.inPlace() {
		to = from[:min(d.Recv.Sizes[d.Rank], len(from))]
	}
	switch {
	case sum != x.elementCount(from):
		x.recordError(ErrCount, "send has %d elements, and the counts add up to %d", x.elementCount(from), sum)
	case d.Recv.Sizes[d.Rank] != len(to):
		x.recordError(ErrCount, "recv has %d elements, and the block of this rank %d", x.elementCount(to), counts[d.Rank])
	default:
		x.setParts(from, to)
	}
	return x
}

func (c *Comm) reduceScatterBlockCall(name string, send, recv *Buffer, op Op, opts []Option) preparedCall {
	if c.IsInter() {
		return c.interReduceScatterBlock(name, send, recv, op)
	}
	x := c.newCollective(name, coll.ReduceScatter, elementOf(send.datatype, recv.datatype), opts)
	from, to := x.bufferPair(send, recv)
	x.setOperation(op, send, recv)
	ranks := x.devOp.Call.Ranks
	if send.inPlace() {
		to = equalBlock(from, 0, ranks)
	}
	if len(from)/ranks != len(to) || len(from)%ranks != 0 {
		x.recordError(ErrCount, "send has %d elements: %d ranks get %d each", x.elementCount(from), ranks, x.elementCount(to))
		return x
	}
	x.devOp.Call.Bytes = len(to)
	x.setParts(from, to)
	return x
}

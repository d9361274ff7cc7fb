package mpi

import (
	"context"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// ReduceScatter combines the send buffers of all ranks of c, element by element, and gives
// each rank its block of the result: counts[i] elements to rank i, one block after
// another. All ranks give the same counts. A rank may give the beginning of send as recv.
func ReduceScatter[T Element](ctx context.Context, c *Comm, send, recv []T, counts []int, op Op, opts ...Option) error {
	return newCollective[T](c, "ReduceScatter", coll.ReduceScatter, opts).reduceScatter(view(send), view(recv), counts, op).wait(ctx)
}

// IreduceScatter starts ReduceScatter and returns. counts is the caller's again at once.
func IreduceScatter[T Element](c *Comm, send, recv []T, counts []int, op Op, opts ...Option) (Request, error) {
	return newCollective[T](c, "IreduceScatter", coll.ReduceScatter, opts).reduceScatter(view(send), view(recv), counts, op).start()
}

// ReduceScatterBlock is ReduceScatter of blocks that all are as long as recv.
func ReduceScatterBlock[T Element](ctx context.Context, c *Comm, send, recv []T, op Op, opts ...Option) error {
	return newCollective[T](c, "ReduceScatterBlock", coll.ReduceScatter, opts).reduceScatterBlock(view(send), view(recv), op).wait(ctx)
}

// IreduceScatterBlock starts ReduceScatterBlock and returns.
func IreduceScatterBlock[T Element](c *Comm, send, recv []T, op Op, opts ...Option) (Request, error) {
	return newCollective[T](c, "IreduceScatterBlock", coll.ReduceScatter, opts).reduceScatterBlock(view(send), view(recv), op).start()
}

// ReduceScatter combines the send buffers of all ranks, element by element, and gives counts[i] elements of the result to
// rank i, one block after another. In place, what is combined is in recv, and the result goes to its beginning.
func (c *Comm) ReduceScatter(ctx context.Context, send, recv Buffer, counts []int, op Op, opts ...Option) error {
	return c.reduceScatterCall("ReduceScatter", &send, &recv, counts, op, opts).wait(ctx)
}

// IreduceScatter starts ReduceScatter and returns.
func (c *Comm) IreduceScatter(send, recv Buffer, counts []int, op Op, opts ...Option) (Request, error) {
	return c.reduceScatterCall("IreduceScatter", &send, &recv, counts, op, opts).start()
}

// ReduceScatterBlock is ReduceScatter of blocks that all are as long as recv. In place, recv is as long as all of them.
func (c *Comm) ReduceScatterBlock(ctx context.Context, send, recv Buffer, op Op, opts ...Option) error {
	return c.reduceScatterBlockCall("ReduceScatterBlock", &send, &recv, op, opts).wait(ctx)
}

// IreduceScatterBlock starts ReduceScatterBlock and returns.
func (c *Comm) IreduceScatterBlock(send, recv Buffer, op Op, opts ...Option) (Request, error) {
	return c.reduceScatterBlockCall("IreduceScatterBlock", &send, &recv, op, opts).start()
}

func (x *collectiveCall) reduceScatter(send, recv []byte, counts []int, op Op) *collectiveCall {
	x.operation(op)
	c := &x.dev.Call
	if c.Recv = x.layout("send", send, counts, nil, false); x.err != nil {
		return x
	}
	c.Recv.Offsets = nil
	sum := 0
	for _, n := range counts {
		sum += n
	}
	switch {
	case sum != x.count(send):
		x.refuse(ErrCount, "send has %d elements, and the counts add up to %d", x.count(send), sum)
	case c.Recv.Sizes[c.Rank] != len(recv):
		x.refuse(ErrCount, "recv has %d elements, and the block of this rank %d", x.count(recv), counts[c.Rank])
	default:
		x.parts(send, recv)
	}
	return x
}

func (x *collectiveCall) reduceScatterBlock(send, recv []byte, op Op) *collectiveCall {
	x.operation(op)
	if ranks := x.dev.Call.Ranks; len(send)/ranks != len(recv) || len(send)%ranks != 0 {
		x.refuse(ErrCount, "send has %d elements: %d ranks get %d each", x.count(send), ranks, x.count(recv))
		return x
	}
	x.dev.Call.Bytes = len(recv)
	x.parts(send, recv)
	return x
}

// parts takes the buffers of a call whose result is a part of what is combined. In place,
// the result goes to the beginning of it.
func (x *collectiveCall) parts(send, recv []byte) {
	d := &x.dev
	d.Send, d.Recv = send, recv
	if x.inPlace(recv, send, 0, [2]string{"recv", "send"}) {
		d.Send, d.Recv = nil, send
	}
}

func (c *Comm) reduceScatterCall(name string, send, recv *Buffer, counts []int, op Op, opts []Option) begun {
	if c.IsInter() {
		return c.interReduceScatter(name, send, recv, counts, op)
	}
	return c.collective(name, coll.ReduceScatter, typedBy(send.of, recv.of), opts).reduceScatterTyped(send, recv, counts, op)
}

func (c *Comm) reduceScatterBlockCall(name string, send, recv *Buffer, op Op, opts []Option) begun {
	if c.IsInter() {
		return c.interReduceScatterBlock(name, send, recv, op)
	}
	return c.collective(name, coll.ReduceScatter, typedBy(send.of, recv.of), opts).reduceScatterBlockTyped(send, recv, op)
}

func (x *collectiveCall) reduceScatterTyped(send, recv *Buffer, counts []int, op Op) *collectiveCall {
	op = x.typedOperation(op, send, recv)
	if send.inPlace() {
		from := x.contents(recv, true, true)
		if me := x.dev.Call.Rank; me < len(counts) && counts[me] >= 0 {
			return x.reduceScatter(from, from[:min(counts[me]*x.elem.size, len(from))], counts, op)
		}
		return x.reduceScatter(from, nil, counts, op)
	}
	from, to := x.both(send, recv)
	return x.reduceScatter(from, to, counts, op)
}

func (x *collectiveCall) reduceScatterBlockTyped(send, recv *Buffer, op Op) *collectiveCall {
	op = x.typedOperation(op, send, recv)
	from, to := x.both(send, recv)
	if send.inPlace() {
		to = to[:len(to)/x.dev.Call.Ranks]
	}
	return x.reduceScatterBlock(from, to, op)
}

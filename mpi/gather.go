package mpi

import (
	"context"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// Gather gives root what all ranks of c have in send, in the order of ranks: recv is as
// long as all of them together, and is ignored on other ranks. send is as long on all.
// Root may give its own block of recv as send.
func Gather[T Element](ctx context.Context, c *Comm, send, recv []T, root int, opts ...Option) error {
	return newCollective[T](c, "Gather", coll.Gather, opts).gather(view(send), view(recv), root).wait(ctx)
}

// Igather starts Gather and returns.
func Igather[T Element](c *Comm, send, recv []T, root int, opts ...Option) (Request, error) {
	return newCollective[T](c, "Igather", coll.Gather, opts).gather(view(send), view(recv), root).start()
}

// Gatherv is Gather of blocks that may be of different lengths: rank i gives counts[i]
// elements, which go to recv at displs[i], or one block after another if displs is nil.
// recv, counts and displs are ignored on other ranks than root.
func Gatherv[T Element](ctx context.Context, c *Comm, send, recv []T, counts, displs []int, root int, opts ...Option) error {
	return newCollective[T](c, "Gatherv", coll.Gather, opts).gatherv(view(send), view(recv), counts, displs, root).wait(ctx)
}

// Igatherv starts Gatherv and returns. counts and displs are the caller's again at once.
func Igatherv[T Element](c *Comm, send, recv []T, counts, displs []int, root int, opts ...Option) (Request, error) {
	return newCollective[T](c, "Igatherv", coll.Gather, opts).gatherv(view(send), view(recv), counts, displs, root).start()
}

// Gather gives root what all ranks have in send, in the order of ranks: recv has as many elements as all of
// them together, and is ignored on other ranks. send is InPlace at a root whose own block is in recv.
func (c *Comm) Gather(ctx context.Context, send, recv Buffer, root int, opts ...Option) error {
	return c.gatherCall("Gather", &send, &recv, root, opts).wait(ctx)
}

// Igather starts Gather and returns.
func (c *Comm) Igather(send, recv Buffer, root int, opts ...Option) (Request, error) {
	return c.gatherCall("Igather", &send, &recv, root, opts).start()
}

// Gatherv is Gather of blocks that may be of different lengths.
func (c *Comm) Gatherv(ctx context.Context, send Buffer, recv Blocks, root int, opts ...Option) error {
	return c.gathervCall("Gatherv", &send, &recv, root, opts).wait(ctx)
}

// Igatherv starts Gatherv and returns.
func (c *Comm) Igatherv(send Buffer, recv Blocks, root int, opts ...Option) (Request, error) {
	return c.gathervCall("Igatherv", &send, &recv, root, opts).start()
}

func (x *collectiveCall) gather(send, recv []byte, root int) *collectiveCall {
	x.dev.Call.Bytes, x.dev.Send = len(send), send
	if x.atRoot(root) {
		x.collect(send, recv)
	}
	return x
}

// collect takes the buffers of the rank that gets a block of each rank.
func (x *collectiveCall) collect(send, recv []byte) {
	d := &x.dev
	if ranks := d.Call.Ranks; len(recv)/ranks != len(send) || len(recv)%ranks != 0 {
		x.refuse(ErrCount, "recv has %d elements: %d ranks give %d each", x.count(recv), ranks, x.count(send))
		return
	}
	d.Send, d.Recv = send, recv
	if x.inPlace(send, recv, d.Call.Rank*len(send), [2]string{"send", "recv"}) {
		d.Send = nil
	}
}

func (x *collectiveCall) gatherv(send, recv []byte, counts, displs []int, root int) *collectiveCall {
	x.dev.Call.Bytes, x.dev.Call.Vector, x.dev.Send = len(send), true, send
	if x.atRoot(root) {
		x.collectv(send, recv, x.layout("recv", recv, counts, displs, true))
	}
	return x
}

// collectv does what collect does for blocks of different lengths.
func (x *collectiveCall) collectv(send, recv []byte, l coll.Layout) {
	d := &x.dev
	d.Call.Recv = l
	if x.err != nil {
		return
	}
	me := d.Call.Rank
	if l.Sizes[me] != len(send) {
		x.refuse(ErrCount, "send has %d elements, and recv has room for %d of this rank", x.count(send), l.Sizes[me]/x.elem.size)
		return
	}
	d.Send, d.Recv = send, recv
	if x.inPlace(send, recv, d.Call.Recv.Offsets[me], [2]string{"send", "recv"}) {
		d.Send = nil
	}
}

func (c *Comm) gatherCall(name string, send, recv *Buffer, root int, opts []Option) begun {
	if c.IsInter() {
		return c.interGather(name, send, recv, nil, root)
	}
	return c.collective(name, coll.Gather, typedBy(send.of, recv.of), opts).gatherTyped(send, recv, root)
}

func (c *Comm) gathervCall(name string, send *Buffer, recv *Blocks, root int, opts []Option) begun {
	if c.IsInter() {
		return c.interGather(name, send, nil, recv, root)
	}
	return c.collective(name, coll.Gather, typedBy(send.of, recv.first()), opts).gathervTyped(send, recv, root)
}

func (x *collectiveCall) gatherTyped(send, recv *Buffer, root int) *collectiveCall {
	if !x.atRoot(root) {
		return x.gather(x.contents(send, true, false), nil, root)
	}
	all, mine := x.collected(send, recv)
	return x.gather(mine, all, root)
}

// collected returns a buffer with a block of each rank, and the caller's own one.
func (x *collectiveCall) collected(send, recv *Buffer) (all, mine []byte) {
	all = x.contents(recv, send.inPlace(), true)
	if send.inPlace() {
		return all, nth(all, x.dev.Call.Rank, x.dev.Call.Ranks)
	}
	return all, x.contents(send, true, false)
}

func (x *collectiveCall) gathervTyped(send *Buffer, recv *Blocks, root int) *collectiveCall {
	if !x.atRoot(root) {
		return x.gatherv(x.contents(send, true, false), nil, nil, nil, root)
	}
	x.collectvTyped(send, recv)
	x.dev.Call.Bytes = len(x.dev.Send)
	return x
}

func (x *collectiveCall) collectvTyped(send *Buffer, recv *Blocks) {
	all, l := x.blocks("recv", recv, send.inPlace(), true)
	if x.err != nil {
		return
	}
	if me := x.dev.Call.Rank; send.inPlace() {
		x.collectv(all[l.Offsets[me]:][:l.Sizes[me]], all, l)
	} else {
		x.collectv(x.contents(send, true, false), all, l)
	}
}

package mpi

import (
	"context"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// Gather gives root what all ranks of c have in send, in the order of ranks: recv is as
// long as all of them together, and is ignored on other ranks. send is as long on all.
// Root may give its own block of recv as send.
func Gather[T Element](ctx context.Context, c *Comm, send, recv []T, root int, opts ...Option) error {
	return c.Gather(ctx, bufferOf(send), bufferOf(recv), root, opts...)
}

// Igather starts Gather and returns.
func Igather[T Element](c *Comm, send, recv []T, root int, opts ...Option) (Request, error) {
	return c.Igather(bufferOf(send), bufferOf(recv), root, opts...)
}

// Gatherv is Gather of blocks that may be of different lengths: rank i gives counts[i]
// elements, which go to recv at displs[i], or one block after another if displs is nil.
// recv, counts and displs are ignored on other ranks than root.
func Gatherv[T Element](ctx context.Context, c *Comm, send, recv []T, counts, displs []int, root int, opts ...Option) error {
	return c.Gatherv(ctx, bufferOf(send), blocksOf(recv, counts, displs), root, opts...)
}

// Igatherv starts Gatherv and returns. counts and displs are the caller's again at once.
func Igatherv[T Element](c *Comm, send, recv []T, counts, displs []int, root int, opts ...Option) (Request, error) {
	return c.Igatherv(bufferOf(send), blocksOf(recv, counts, displs), root, opts...)
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

func (c *Comm) gatherCall(name string, send, recv *Buffer, root int, opts []Option) begun {
	if c.IsInter() {
		return c.interGather(name, send, recv, nil, root)
	}
	x := c.collective(name, coll.Gather, typedBy(send.of, recv.of), opts)
	if x.atRoot(root) {
		x.collect(send, recv)
	} else {
		x.give(send)
	}
	return x
}

func (c *Comm) gathervCall(name string, send *Buffer, recv *Blocks, root int, opts []Option) begun {
	if c.IsInter() {
		return c.interGather(name, send, nil, recv, root)
	}
	x := c.collective(name, coll.Gather, typedBy(send.of, recv.first()), opts)
	x.dev.Call.Vector = true
	if x.atRoot(root) {
		x.dev.Call.Bytes = x.collectv(send, recv)
	} else {
		x.give(send)
	}
	return x
}

// give takes the buffer of a rank that gets nothing.
func (x *collectiveCall) give(send *Buffer) {
	x.dev.Send = x.contents(send, true, false)
	x.dev.Call.Bytes = len(x.dev.Send)
}

// collect takes the buffers of a rank that gets a block of each rank.
func (x *collectiveCall) collect(send, recv *Buffer) {
	c := &x.dev.Call
	all := x.contents(recv, send.inPlace(), true)
	var mine []byte
	if send.inPlace() {
		mine = nth(all, c.Rank, c.Ranks)
	} else {
		mine = x.contents(send, true, false)
	}
	c.Bytes = len(mine)
	if len(all)/c.Ranks != len(mine) || len(all)%c.Ranks != 0 {
		x.refuse(ErrCount, "recv has %d elements: %d ranks give %d each", x.count(all), c.Ranks, x.count(mine))
		return
	}
	x.gathered(mine, all, c.Rank*len(mine))
}

// collectv does what collect does for blocks of different lengths, and returns that of the rank's own one.
func (x *collectiveCall) collectv(send *Buffer, recv *Blocks) int {
	c := &x.dev.Call
	all, l := x.blocks("recv", recv, send.inPlace(), true)
	c.Recv = l
	if x.err != nil {
		return 0
	}
	var mine []byte
	if send.inPlace() {
		mine = all[l.Offsets[c.Rank]:][:l.Sizes[c.Rank]]
	} else {
		mine = x.contents(send, true, false)
	}
	if l.Sizes[c.Rank] == len(mine) {
		x.gathered(mine, all, l.Offsets[c.Rank])
	} else {
		x.refuse(ErrCount, "send has %d elements, and recv has room for %d of this rank", x.count(mine), l.Sizes[c.Rank]/x.elem.size)
	}
	return len(mine)
}

// gathered takes the block of a rank that gets one of each, and all blocks, in which its own one is at off.
func (x *collectiveCall) gathered(mine, all []byte, off int) {
	x.dev.Send, x.dev.Recv = mine, all
	if x.inPlace(mine, all, off, [2]string{"send", "recv"}) {
		x.dev.Send = nil
	}
}

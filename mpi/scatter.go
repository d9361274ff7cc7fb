package mpi

import (
	"context"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// Scatter splits root's send into one block for each rank of c, in rank order, and stores each block in that
// rank's recv. send is ignored on other ranks. All recv slices have the same length. If root passes its own
// block of send as recv, the block is not copied.
func Scatter[T Element](ctx context.Context, c *Comm, send, recv []T, root int, opts ...Option) error {
	return c.Scatter(ctx, bufferOf(send), bufferOf(recv), root, opts...)
}

// Iscatter starts Scatter and returns.
func Iscatter[T Element](c *Comm, send, recv []T, root int, opts ...Option) (Request, error) {
	return c.Iscatter(bufferOf(send), bufferOf(recv), root, opts...)
}

// Scatterv is Scatter for blocks that may differ in length. Rank i receives counts[i] elements, which are in
// send at displs[i]. If displs is nil, the blocks follow each other. send, counts and displs are used only at
// root.
func Scatterv[T Element](ctx context.Context, c *Comm, send, recv []T, counts, displs []int, root int,
	opts ...Option) error {
	return c.Scatterv(ctx, blocksOf(send, counts, displs), bufferOf(recv), root, opts...)
}

// Iscatterv starts Scatterv and returns. The caller may reuse counts and displs as soon as it returns.
func Iscatterv[T Element](c *Comm, send, recv []T, counts, displs []int, root int, opts ...Option) (Request, error) {
	return c.Iscatterv(blocksOf(send, counts, displs), bufferOf(recv), root, opts...)
}

// Scatter splits root's send into one block for each rank, in rank order, and stores each block in that rank's
// recv. send is ignored on other ranks. At root, recv may be InPlace; root's own block then remains in send.
func (c *Comm) Scatter(ctx context.Context, send, recv Buffer, root int, opts ...Option) error {
	return c.scatterCall("Scatter", &send, &recv, root, opts).wait(ctx)
}

// Iscatter starts Scatter and returns.
func (c *Comm) Iscatter(send, recv Buffer, root int, opts ...Option) (Request, error) {
	return c.scatterCall("Iscatter", &send, &recv, root, opts).start()
}

// Scatterv is Scatter for blocks that may differ in length.
func (c *Comm) Scatterv(ctx context.Context, send Blocks, recv Buffer, root int, opts ...Option) error {
	return c.scattervCall("Scatterv", &send, &recv, root, opts).wait(ctx)
}

// Iscatterv starts Scatterv and returns.
func (c *Comm) Iscatterv(send Blocks, recv Buffer, root int, opts ...Option) (Request, error) {
	return c.scattervCall("Iscatterv", &send, &recv, root, opts).start()
}

func (c *Comm) scatterCall(name string, send, recv *Buffer, root int, opts []Option) begun {
	if c.IsInter() {
		return c.interScatter(name, send, nil, recv, root)
	}
	x := c.collective(name, coll.Scatter, typedBy(recv.of, send.of), opts)
	if x.atRoot(root) {
		x.distribute(send, recv, root)
	} else {
		x.get(recv)
	}
	return x
}

func (c *Comm) scattervCall(name string, send *Blocks, recv *Buffer, root int, opts []Option) begun {
	if c.IsInter() {
		return c.interScatter(name, nil, send, recv, root)
	}
	x := c.collective(name, coll.Scatter, typedBy(recv.of, send.first()), opts)
	x.dev.Call.Vector = true
	if x.atRoot(root) {
		x.distributev(send, recv, root)
	} else {
		x.get(recv)
	}
	return x
}

// get sets the buffer of a rank that only receives.
func (x *collectiveCall) get(recv *Buffer) {
	x.dev.Recv = x.contents(recv, false, true)
	x.dev.Call.Bytes = len(x.dev.Recv)
}

// distribute sets the buffers of the root.
func (x *collectiveCall) distribute(send, recv *Buffer, root int) {
	c := &x.dev.Call
	all := x.contents(send, true, false)
	var mine []byte
	if recv.inPlace() {
		mine = nth(all, root, c.Ranks)
	} else {
		mine = x.contents(recv, false, true)
	}
	c.Bytes = len(mine)
	if len(all)/c.Ranks != len(mine) || len(all)%c.Ranks != 0 {
		x.refuse(ErrCount, "send has %d elements: %d ranks get %d each", x.count(all), c.Ranks, x.count(mine))
		return
	}
	x.scattered(mine, all, root*len(mine))
}

// distributev is distribute for blocks that may differ in length.
func (x *collectiveCall) distributev(send *Blocks, recv *Buffer, root int) {
	c := &x.dev.Call
	all, l := x.blocks("send", send, true, false)
	c.Send = l
	if x.err != nil {
		return
	}
	var mine []byte
	if recv.inPlace() {
		mine = all[l.Offsets[root]:][:l.Sizes[root]]
	} else {
		mine = x.contents(recv, false, true)
	}
	c.Bytes = len(mine)
	if l.Sizes[root] != len(mine) {
		x.refuse(ErrCount, "recv has %d elements, and send %d for this rank", x.count(mine), l.Sizes[root]/x.elem.size)
		return
	}
	x.scattered(mine, all, l.Offsets[root])
}

// scattered sets the buffers of the root: mine is its own block, and all holds all blocks, with its own block
// at offset off.
func (x *collectiveCall) scattered(mine, all []byte, off int) {
	x.dev.Send, x.dev.Recv = all, mine
	if x.inPlace(mine, all, off, [2]string{"recv", "send"}) {
		x.dev.Recv = nil
	}
}

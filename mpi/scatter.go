package mpi

import (
	"context"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// Scatter splits root's send into one block for each rank of c, in rank order, and stores each block in that rank's
// recv. send is ignored on other ranks. All recv slices must have the same length. If root passes its own block of send
// as recv, the block is not copied.
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

func (c *Comm) scatterCall(name string, send, recv *Buffer, root int, opts []Option) preparedCall {
	if c.IsInter() {
		return c.interScatter(name, send, nil, recv, root)
	}
	x := c.newCollective(name, coll.Scatter, elementOf(recv.datatype, send.datatype), opts)
	if x.setRoot(root) {
		x.setScatter(send, recv, root)
	} else {
		x.setRecv(recv)
	}
	return x
}

func (c *Comm) scattervCall(name string, send *Blocks, recv *Buffer, root int, opts []Option) preparedCall {
	if c.IsInter() {
		return c.interScatter(name, nil, send, recv, root)
	}
	x := c.newCollective(name, coll.Scatter, elementOf(recv.datatype, send.firstType()), opts)
	x.devOp.Call.Vector = true
	if x.setRoot(root) {
		x.setScatterv(send, recv, root)
	} else {
		x.setRecv(recv)
	}
	return x
}

// setRecv sets the buffer of a rank that only receives.
func (x *collectiveCall) setRecv(recv *Buffer) {
	x.devOp.Recv = x.contiguousBytes(recv, false, true)
	x.devOp.Call.Bytes = len(x.devOp.Recv)
}

// setScatter sets the buffers of the root.
func (x *collectiveCall) setScatter(send, recv *Buffer, root int) {
	c := &x.devOp.Call
	all := x.contiguousBytes(send, true, false)
	var mine []byte
	if recv.inPlace() {
		mine = equalBlock(all, root, c.Ranks)
	} else {
		mine = x.contiguousBytes(recv, false, true)
	}
	c.Bytes = len(mine)
	if len(all)/c.Ranks != len(mine) || len(all)%c.Ranks != 0 {
		x.recordError(ErrCount, "send has %d elements: %d ranks get %d each", x.elementCount(all), c.Ranks,
			x.elementCount(mine))
		return
	}
	x.setScatterBuffers(mine, all, root*len(mine))
}

// setScatterv is like setScatter, for blocks that may differ in length.
func (x *collectiveCall) setScatterv(send *Blocks, recv *Buffer, root int) {
	c := &x.devOp.Call
	all, layout := x.contiguousBlocks("send", send, true, false)
	c.Send = layout
	if x.err != nil {
		return
	}
	var mine []byte
	if recv.inPlace() {
		mine = all[layout.Offsets[root]:][:layout.Sizes[root]]
	} else {
		mine = x.contiguousBytes(recv, false, true)
	}
	c.Bytes = len(mine)
	if layout.Sizes[root] != len(mine) {
		x.recordError(ErrCount, "recv has %d elements, and send %d for this rank", x.elementCount(mine),
			layout.Sizes[root]/x.elem.size)
		return
	}
	x.setScatterBuffers(mine, all, layout.Offsets[root])
}

// setScatterBuffers sets the buffers of the root. mine is the root's own block, and all is the buffer of all blocks, in
// which the root's block begins at offset off.
func (x *collectiveCall) setScatterBuffers(mine, all []byte, off int) {
	x.devOp.Send, x.devOp.Recv = all, mine
	if x.checkInPlace(mine, all, off, [2]string{"recv", "send"}) {
		x.devOp.Recv = nil
	}
}

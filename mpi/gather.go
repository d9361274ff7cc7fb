package mpi

import (
	"context"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// Gather concatenates the send slices of all ranks of c, in rank order, into recv of root. recv is ignored on other
// ranks. All send slices must have the same length. Root may pass its own block of recv as send.
func Gather[T Element](ctx context.Context, c *Comm, send, recv []T, root int, opts ...Option) error {
	return c.Gather(ctx, bufferOf(send), bufferOf(recv), root, opts...)
}

// Igather starts Gather and returns.
func Igather[T Element](c *Comm, send, recv []T, root int, opts ...Option) (Request, error) {
	return c.Igather(bufferOf(send), bufferOf(recv), root, opts...)
}

// Gatherv is Gather for blocks that may differ in length. Rank i contributes counts[i] elements, which are
// stored in recv at displs[i]. If displs is nil, the blocks are stored consecutively. recv, counts and displs
// are used only at root.
func Gatherv[T Element](ctx context.Context, c *Comm, send, recv []T, counts, displs []int, root int,
	opts ...Option) error {
	return c.Gatherv(ctx, bufferOf(send), blocksOf(recv, counts, displs), root, opts...)
}

// Igatherv starts Gatherv and returns. The caller may reuse counts and displs as soon as it returns.
func Igatherv[T Element](c *Comm, send, recv []T, counts, displs []int, root int, opts ...Option) (Request, error) {
	return c.Igatherv(bufferOf(send), blocksOf(recv, counts, displs), root, opts...)
}

// Gather concatenates the send buffers of all ranks, in rank order, into recv of root. recv is ignored on other
// ranks. At root, send may be InPlace if root's own block is already in recv.
func (c *Comm) Gather(ctx context.Context, send, recv Buffer, root int, opts ...Option) error {
	return c.gatherCall("Gather", &send, &recv, root, opts).wait(ctx)
}

// Igather starts Gather and returns.
func (c *Comm) Igather(send, recv Buffer, root int, opts ...Option) (Request, error) {
	return c.gatherCall("Igather", &send, &recv, root, opts).start()
}

// Gatherv is Gather for blocks that may differ in length.
func (c *Comm) Gatherv(ctx context.Context, send Buffer, recv Blocks, root int, opts ...Option) error {
	return c.gathervCall("Gatherv", &send, &recv, root, opts).wait(ctx)
}

// Igatherv starts Gatherv and returns.
func (c *Comm) Igatherv(send Buffer, recv Blocks, root int, opts ...Option) (Request, error) {
	return c.gathervCall("Igatherv", &send, &recv, root, opts).start()
}

func (c *Comm) gatherCall(name string, send, recv *Buffer, root int, opts []Option) preparedCall {
	if c.IsInter() {
		return c.interGather(name, send, recv, nil, root)
	}
	x := c.newCollective(name, coll.Gather, elementOf(send.datatype, recv.datatype), opts)
	if x.setRoot(root) {
		x.setGather(send, recv)
	} else {
		x.setSend(send)
	}
	return x
}

// gathervCall prepares the call for all of its forms. Only the root knows the layout, so Vector marks the v-form for
// the other ranks.
func (c *Comm) gathervCall(name string, send *Buffer, recv *Blocks, root int, opts []Option) preparedCall {
	if c.IsInter() {
		return c.interGather(name, send, nil, recv, root)
	}
	x := c.newCollective(name, coll.Gather, elementOf(send.datatype, recv.firstType()), opts)
	x.devOp.Call.Vector = true
	if x.setRoot(root) {
		x.devOp.Call.Bytes = x.setGatherv(send, recv)
	} else {
		x.setSend(send)
	}
	return x
}

// setSend sets the buffer of a rank that only contributes.
func (x *collectiveCall) setSend(send *Buffer) {
	x.devOp.Send = x.contiguousBytes(send, true, false)
	x.devOp.Call.Bytes = len(x.devOp.Send)
}

// setGather sets the buffers of a rank that receives a block from each rank.
func (x *collectiveCall) setGather(send, recv *Buffer) {
	c := &x.devOp.Call
	all := x.contiguousBytes(recv, send.inPlace(), true)
	var mine []byte
	if send.inPlace() {
		mine = equalBlock(all, c.Rank, c.Ranks)
	} else {
		mine = x.contiguousBytes(send, true, false)
	}
	c.Bytes = len(mine)
	if len(all)/c.Ranks != len(mine) || len(all)%c.Ranks != 0 {
		x.recordError(ErrCount, "recv has %d elements: %d ranks give %d each", x.elementCount(all), c.Ranks,
			x.elementCount(mine))
		return
	}
	x.setGatherBuffers(mine, all, c.Rank*len(mine))
}

// setGatherv is like setGather, for blocks that may differ in length. It returns the length of the rank's own block.
func (x *collectiveCall) setGatherv(send *Buffer, recv *Blocks) int {
	c := &x.devOp.Call
	all, layout := x.contiguousBlocks("recv", recv, send.inPlace(), true)
	c.Recv = layout
	if x.err != nil {
		return 0
	}
	var mine []byte
	if send.inPlace() {
		mine = all[layout.Offsets[c.Rank]:][:layout.Sizes[c.Rank]]
	} else {
		mine = x.contiguousBytes(send, true, false)
	}
	if layout.Sizes[c.Rank] == len(mine) {
		x.setGatherBuffers(mine, all, layout.Offsets[c.Rank])
	} else {
		x.recordError(ErrCount, "send has %d elements, but the block of this rank in recv has %d", x.elementCount(mine),
			layout.Sizes[c.Rank]/x.elem.size)
	}
	return len(mine)
}

// setGatherBuffers sets the buffers of a receiving rank. mine is the rank's contribution, and all is the buffer for all
// blocks, in which its own block begins at offset off.
func (x *collectiveCall) setGatherBuffers(mine, all []byte, off int) {
	x.devOp.Send, x.devOp.Recv = mine, all
	if x.checkInPlace(mine, all, off, [2]string{"send", "recv"}) {
		x.devOp.Send = nil
	}
}

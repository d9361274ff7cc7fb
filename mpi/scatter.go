package mpi

import (
	"context"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// Scatter gives each rank of c its block of what root has in send, in the order of ranks:
// send is as long as all of them together, and is ignored on other ranks. recv is as
// long on all. Root may give its own block of send as recv: then it stays there.
func Scatter[T Element](ctx context.Context, c *Comm, send, recv []T, root int, opts ...Option) error {
	return c.Scatter(ctx, bufferOf(send), bufferOf(recv), root, opts...)
}

// Iscatter starts Scatter and returns.
func Iscatter[T Element](c *Comm, send, recv []T, root int, opts ...Option) (Request, error) {
	return c.Iscatter(bufferOf(send), bufferOf(recv), root, opts...)
}

// Scatterv is Scatter of blocks that may be of different lengths: rank i gets counts[i]
// elements, which are in send at displs[i], or one block after another if displs is nil.
// send, counts and displs are ignored on other ranks than root.
func Scatterv[T Element](ctx context.Context, c *Comm, send, recv []T, counts, displs []int, root int, opts ...Option) error {
	return c.Scatterv(ctx, blocksOf(send, counts, displs), bufferOf(recv), root, opts...)
}

// Iscatterv starts Scatterv and returns. counts and displs are the caller's again at once.
func Iscatterv[T Element](c *Comm, send, recv []T, counts, displs []int, root int, opts ...Option) (Request, error) {
	return c.Iscatterv(blocksOf(send, counts, displs), bufferOf(recv), root, opts...)
}

// Scatter gives each rank its block of what root has in send, in the order of ranks: send has as many elements as
// all of them together, and is ignored on other ranks. recv is InPlace at a root whose own block stays in send.
func (c *Comm) Scatter(ctx context.Context, send, recv Buffer, root int, opts ...Option) error {
	return c.scatterCall("Scatter", &send, &recv, root, opts).wait(ctx)
}

// Iscatter starts Scatter and returns.
func (c *Comm) Iscatter(send, recv Buffer, root int, opts ...Option) (Request, error) {
	return c.scatterCall("Iscatter", &send, &recv, root, opts).start()
}

// Scatterv is Scatter of blocks that may be of different lengths.
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

// get takes the buffer of a rank that gives nothing.
func (x *collectiveCall) get(recv *Buffer) {
	x.dev.Recv = x.contents(recv, false, true)
	x.dev.Call.Bytes = len(x.dev.Recv)
}

// distribute takes the buffers of the root.
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

// distributev does what distribute does for blocks of different lengths.
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

// scattered takes the block of the root, and all blocks, in which its own one is at off.
func (x *collectiveCall) scattered(mine, all []byte, off int) {
	x.dev.Send, x.dev.Recv = all, mine
	if x.inPlace(mine, all, off, [2]string{"recv", "send"}) {
		x.dev.Recv = nil
	}
}

package mpi

import (
	"context"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// Scatter gives each rank of c its block of what root has in send, in the order of ranks:
// send is as long as all of them together, and is ignored on other ranks. recv is as
// long on all. Root may give its own block of send as recv: then it stays there.
func Scatter[T Element](ctx context.Context, c *Comm, send, recv []T, root int, opts ...Option) error {
	return newCollective[T](c, "Scatter", coll.Scatter, opts).scatter(view(send), view(recv), root).wait(ctx)
}

// Iscatter starts Scatter and returns.
func Iscatter[T Element](c *Comm, send, recv []T, root int, opts ...Option) (Request, error) {
	return newCollective[T](c, "Iscatter", coll.Scatter, opts).scatter(view(send), view(recv), root).start()
}

// Scatterv is Scatter of blocks that may be of different lengths: rank i gets counts[i]
// elements, which are in send at displs[i], or one block after another if displs is nil.
// send, counts and displs are ignored on other ranks than root.
func Scatterv[T Element](ctx context.Context, c *Comm, send, recv []T, counts, displs []int, root int, opts ...Option) error {
	return newCollective[T](c, "Scatterv", coll.Scatter, opts).scatterv(view(send), view(recv), counts, displs, root).wait(ctx)
}

// Iscatterv starts Scatterv and returns. counts and displs are the caller's again at once.
func Iscatterv[T Element](c *Comm, send, recv []T, counts, displs []int, root int, opts ...Option) (Request, error) {
	return newCollective[T](c, "Iscatterv", coll.Scatter, opts).scatterv(view(send), view(recv), counts, displs, root).start()
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

func (x *collectiveCall) scatter(send, recv []byte, root int) *collectiveCall {
	d := &x.dev
	d.Call.Bytes, d.Recv = len(recv), recv
	if !x.atRoot(root) {
		return x
	}
	if ranks := d.Call.Ranks; len(send)/ranks != len(recv) || len(send)%ranks != 0 {
		x.refuse(ErrCount, "send has %d elements: %d ranks get %d each", x.count(send), ranks, x.count(recv))
		return x
	}
	x.distribute(send, recv, root*len(recv))
	return x
}

func (x *collectiveCall) scatterv(send, recv []byte, counts, displs []int, root int) *collectiveCall {
	x.dev.Call.Bytes, x.dev.Call.Vector, x.dev.Recv = len(recv), true, recv
	if x.atRoot(root) {
		x.distributev(send, recv, x.layout("send", send, counts, displs, false))
	}
	return x
}

// distributev takes the root's blocks of different lengths.
func (x *collectiveCall) distributev(send, recv []byte, l coll.Layout) {
	c := &x.dev.Call
	c.Send = l
	switch {
	case x.err != nil:
	case l.Sizes[c.Root] != len(recv):
		x.refuse(ErrCount, "recv has %d elements, and send %d for this rank", x.count(recv), l.Sizes[c.Root]/x.elem.size)
	default:
		x.distribute(send, recv, l.Offsets[c.Root])
	}
}

// distribute takes the buffers of the root, whose own block is at off.
func (x *collectiveCall) distribute(send, recv []byte, off int) {
	x.dev.Send = send
	if x.inPlace(recv, send, off, [2]string{"recv", "send"}) {
		x.dev.Recv = nil
	}
}

func (c *Comm) scatterCall(name string, send, recv *Buffer, root int, opts []Option) begun {
	if c.IsInter() {
		return c.interScatter(name, send, nil, recv, root)
	}
	return c.collective(name, coll.Scatter, typedBy(recv.of, send.of), opts).scatterTyped(send, recv, root)
}

func (c *Comm) scattervCall(name string, send *Blocks, recv *Buffer, root int, opts []Option) begun {
	if c.IsInter() {
		return c.interScatter(name, nil, send, recv, root)
	}
	return c.collective(name, coll.Scatter, typedBy(recv.of, send.first()), opts).scattervTyped(send, recv, root)
}

func (x *collectiveCall) scatterTyped(send, recv *Buffer, root int) *collectiveCall {
	if !x.atRoot(root) {
		return x.scatter(nil, x.contents(recv, false, true), root)
	}
	all := x.contents(send, true, false)
	if recv.inPlace() {
		return x.scatter(all, nth(all, root, x.dev.Call.Ranks), root)
	}
	return x.scatter(all, x.contents(recv, false, true), root)
}

func (x *collectiveCall) scattervTyped(send *Blocks, recv *Buffer, root int) *collectiveCall {
	if !x.atRoot(root) {
		return x.scatterv(nil, x.contents(recv, false, true), nil, nil, root)
	}
	all, l := x.blocks("send", send, true, false)
	if x.err != nil {
		return x
	}
	var mine []byte
	if recv.inPlace() {
		mine = all[l.Offsets[root]:][:l.Sizes[root]]
	} else {
		mine = x.contents(recv, false, true)
	}
	x.dev.Call.Bytes, x.dev.Recv = len(mine), mine
	x.distributev(all, mine, l)
	return x
}

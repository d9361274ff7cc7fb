package mpi

import (
	"context"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
	reduction "github.com/zrlmpi/zrlmpid/mpe/coll/op"
	"github.com/zrlmpi/zrlmpid/mpi/datatype"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Bcast gives all ranks what root has in a buffer, of as many bytes on all of them.
func (c *Comm) Bcast(ctx context.Context, b Buffer, root int, opts ...Option) error {
	return c.bcastCall("Bcast", &b, root, opts).wait(ctx)
}

// Ibcast starts Bcast and returns.
func (c *Comm) Ibcast(b Buffer, root int, opts ...Option) (Request, error) {
	return c.bcastCall("Ibcast", &b, root, opts).start()
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

// Allgather gives all ranks what each of them has in send, in the order of ranks: recv has as many elements as
// all of them together.
func (c *Comm) Allgather(ctx context.Context, send, recv Buffer, opts ...Option) error {
	return c.allgatherCall("Allgather", &send, &recv, opts).wait(ctx)
}

// Iallgather starts Allgather and returns.
func (c *Comm) Iallgather(send, recv Buffer, opts ...Option) (Request, error) {
	return c.allgatherCall("Iallgather", &send, &recv, opts).start()
}

// Allgatherv is Allgather of blocks that may be of different lengths.
func (c *Comm) Allgatherv(ctx context.Context, send Buffer, recv Blocks, opts ...Option) error {
	return c.allgathervCall("Allgatherv", &send, &recv, opts).wait(ctx)
}

// Iallgatherv starts Allgatherv and returns.
func (c *Comm) Iallgatherv(send Buffer, recv Blocks, opts ...Option) (Request, error) {
	return c.allgathervCall("Iallgatherv", &send, &recv, opts).start()
}

// Alltoall gives each rank a block of every rank's send, which has one for each, all of one length: block j of rank i
// becomes block i of rank j's recv.
func (c *Comm) Alltoall(ctx context.Context, send, recv Buffer, opts ...Option) error {
	return c.alltoallCall("Alltoall", &send, &recv, opts).wait(ctx)
}

// Ialltoall starts Alltoall and returns.
func (c *Comm) Ialltoall(send, recv Buffer, opts ...Option) (Request, error) {
	return c.alltoallCall("Ialltoall", &send, &recv, opts).start()
}

// Alltoallv is Alltoall of blocks that may be of different lengths, and of different datatypes (MPI_Alltoallw). send may be
// InPlaceBlocks.
func (c *Comm) Alltoallv(ctx context.Context, send, recv Blocks, opts ...Option) error {
	return c.alltoallvCall("Alltoallv", &send, &recv, opts).wait(ctx)
}

// Ialltoallv starts Alltoallv and returns.
func (c *Comm) Ialltoallv(send, recv Blocks, opts ...Option) (Request, error) {
	return c.alltoallvCall("Ialltoallv", &send, &recv, opts).start()
}

// Reduce combines the send buffers of all ranks, element by element, into recv of root.
func (c *Comm) Reduce(ctx context.Context, send, recv Buffer, op Op, root int, opts ...Option) error {
	return c.reduceCall("Reduce", &send, &recv, op, root, opts).wait(ctx)
}

// Ireduce starts Reduce and returns.
func (c *Comm) Ireduce(send, recv Buffer, op Op, root int, opts ...Option) (Request, error) {
	return c.reduceCall("Ireduce", &send, &recv, op, root, opts).start()
}

// Allreduce combines the send buffers of all ranks, element by element, into recv of all.
func (c *Comm) Allreduce(ctx context.Context, send, recv Buffer, op Op, opts ...Option) error {
	return c.allreduceCall("Allreduce", &send, &recv, op, opts).wait(ctx)
}

// Iallreduce starts Allreduce and returns.
func (c *Comm) Iallreduce(send, recv Buffer, op Op, opts ...Option) (Request, error) {
	return c.allreduceCall("Iallreduce", &send, &recv, op, opts).start()
}

// Scan gives each rank the send buffers of the ranks up to itself, combined element by element.
func (c *Comm) Scan(ctx context.Context, send, recv Buffer, op Op, opts ...Option) error {
	return c.collective("Scan", coll.Scan, typedBy(send.of, recv.of), opts).toAllTyped(&send, &recv, op).wait(ctx)
}

// Iscan starts Scan and returns.
func (c *Comm) Iscan(send, recv Buffer, op Op, opts ...Option) (Request, error) {
	return c.collective("Iscan", coll.Scan, typedBy(send.of, recv.of), opts).toAllTyped(&send, &recv, op).start()
}

// Exscan is Scan without the rank's own contribution. recv of rank 0 is undefined afterwards.
func (c *Comm) Exscan(ctx context.Context, send, recv Buffer, op Op, opts ...Option) error {
	return c.collective("Exscan", coll.Exscan, typedBy(send.of, recv.of), opts).toAllTyped(&send, &recv, op).wait(ctx)
}

// Iexscan starts Exscan and returns.
func (c *Comm) Iexscan(send, recv Buffer, op Op, opts ...Option) (Request, error) {
	return c.collective("Iexscan", coll.Exscan, typedBy(send.of, recv.of), opts).toAllTyped(&send, &recv, op).start()
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

// begun is a call on an intracommunicator or an intercommunicator, of which everything is known.
type begun interface {
	wait(ctx context.Context) error
	start() (Request, error)
}

func (c *Comm) bcastCall(name string, b *Buffer, root int, opts []Option) begun {
	if c.IsInter() {
		return c.interBcast(name, b, root)
	}
	return c.collective(name, coll.Bcast, typedBy(b.of, nil), opts).bcastTyped(b, root)
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

func (c *Comm) allgatherCall(name string, send, recv *Buffer, opts []Option) begun {
	if c.IsInter() {
		return c.interAllgather(name, send, recv, nil)
	}
	return c.collective(name, coll.Allgather, typedBy(send.of, recv.of), opts).allgatherTyped(send, recv)
}

func (c *Comm) allgathervCall(name string, send *Buffer, recv *Blocks, opts []Option) begun {
	if c.IsInter() {
		return c.interAllgather(name, send, nil, recv)
	}
	return c.collective(name, coll.Allgather, typedBy(send.of, recv.first()), opts).allgathervTyped(send, recv)
}

func (c *Comm) alltoallCall(name string, send, recv *Buffer, opts []Option) begun {
	if c.IsInter() {
		return c.interAlltoall(name, send, recv)
	}
	return c.collective(name, coll.Alltoall, typedBy(send.of, recv.of), opts).alltoallTyped(send, recv)
}

func (c *Comm) alltoallvCall(name string, send, recv *Blocks, opts []Option) begun {
	if c.IsInter() {
		return c.interAlltoallv(name, send, recv)
	}
	return c.collective(name, coll.Alltoall, typedBy(send.first(), recv.first()), opts).alltoallvTyped(send, recv)
}

func (c *Comm) reduceCall(name string, send, recv *Buffer, op Op, root int, opts []Option) begun {
	if c.IsInter() {
		return c.interReduce(name, send, recv, op, root)
	}
	return c.collective(name, coll.Reduce, typedBy(send.of, recv.of), opts).reduceTyped(send, recv, op, root)
}

func (c *Comm) allreduceCall(name string, send, recv *Buffer, op Op, opts []Option) begun {
	if c.IsInter() {
		return c.interAllreduce(name, send, recv, op)
	}
	return c.collective(name, coll.Allreduce, typedBy(send.of, recv.of), opts).toAllTyped(send, recv, op)
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

// typedBy is the element of a datatype, or of another one if that is nil.
func typedBy(t, other *datatype.Type) element {
	if t == nil {
		t = other
	}
	e := element{size: 1, datatype: protocol.Int}
	if t != nil {
		e.typ = t.Element()
		e.size = max(e.typ.Size(), 1)
		e.datatype, e.any = onWire(t)
	}
	return e
}

// first is the datatype of the first block.
func (b *Blocks) first() *datatype.Type {
	if len(b.of) == 0 {
		return nil
	}
	return b.of[0].Of
}

func (x *collectiveCall) bcastTyped(b *Buffer, root int) *collectiveCall {
	isRoot := x.atRoot(root)
	buf := x.contents(b, isRoot, !isRoot)
	x.dev.Recv, x.dev.Call.Bytes = buf, len(buf)
	return x
}

// own is the caller's block of a buffer with one for each rank.
func (x *collectiveCall) own(all []byte) []byte {
	c := &x.dev.Call
	n := len(all) / c.Ranks
	return all[c.Rank*n : (c.Rank+1)*n]
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
		return all, x.own(all)
	}
	return all, x.contents(send, true, false)
}

func (x *collectiveCall) gathervTyped(send *Buffer, recv *Blocks, root int) *collectiveCall {
	c := &x.dev.Call
	c.Vector = true
	if !x.atRoot(root) {
		x.dev.Send = x.contents(send, true, false)
		c.Bytes = len(x.dev.Send)
		return x
	}
	x.collectvTyped(send, recv)
	c.Bytes = len(x.dev.Send)
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

func (x *collectiveCall) scatterTyped(send, recv *Buffer, root int) *collectiveCall {
	if !x.atRoot(root) {
		return x.scatter(nil, x.contents(recv, false, true), root)
	}
	all := x.contents(send, true, false)
	if recv.inPlace() {
		return x.scatter(all, x.own(all), root)
	}
	return x.scatter(all, x.contents(recv, false, true), root)
}

func (x *collectiveCall) scattervTyped(send *Blocks, recv *Buffer, root int) *collectiveCall {
	c := &x.dev.Call
	c.Vector = true
	var mine []byte
	if !x.atRoot(root) {
		mine = x.contents(recv, false, true)
		c.Bytes, x.dev.Recv = len(mine), mine
		return x
	}
	all, l := x.blocks("send", send, true, false)
	if x.err != nil {
		return x
	}
	if recv.inPlace() {
		mine = all[l.Offsets[root]:][:l.Sizes[root]]
	} else {
		mine = x.contents(recv, false, true)
	}
	c.Bytes, x.dev.Recv = len(mine), mine
	x.distributev(all, mine, l)
	return x
}

func (x *collectiveCall) allgatherTyped(send, recv *Buffer) *collectiveCall {
	all, mine := x.collected(send, recv)
	return x.allgather(mine, all)
}

func (x *collectiveCall) allgathervTyped(send *Buffer, recv *Blocks) *collectiveCall {
	x.collectvTyped(send, recv)
	return x
}

// both are the buffers of a call that may be in place: then they are the same.
func (x *collectiveCall) both(send, recv *Buffer) (from, to []byte) {
	to = x.contents(recv, send.inPlace(), true)
	if send.inPlace() {
		return to, to
	}
	return x.contents(send, true, false), to
}

func (x *collectiveCall) alltoallTyped(send, recv *Buffer) *collectiveCall {
	return x.alltoall(x.both(send, recv))
}

func (x *collectiveCall) alltoallvTyped(send, recv *Blocks) *collectiveCall {
	c := &x.dev.Call
	to, l := x.blocks("recv", recv, send.inPlace, true)
	c.Recv = l
	if send.inPlace {
		c.InPlace, x.dev.Recv = true, to
		return x
	}
	from, l := x.blocks("send", send, true, false)
	if overlap(from, to) {
		// Blocks of both may lie between each other: what is written decides, which the device does in any order.
		x.sent.packed = append(x.sent.packed[:0], from...)
		from = x.sent.packed
	}
	x.exchange(from, to, l)
	return x
}

func (x *collectiveCall) reduceTyped(send, recv *Buffer, op Op, root int) *collectiveCall {
	op = x.typedOperation(op, send, recv)
	if !x.atRoot(root) {
		return x.toRoot(x.contents(send, true, false), nil, op, root)
	}
	from, to := x.both(send, recv)
	return x.toRoot(from, to, op, root)
}

func (x *collectiveCall) toAllTyped(send, recv *Buffer, op Op) *collectiveCall {
	op = x.typedOperation(op, send, recv)
	from, to := x.both(send, recv)
	return x.toAll(from, to, op)
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

// typedOperation is an operation on what is packed.
func (x *collectiveCall) typedOperation(o Op, send, recv *Buffer) Op {
	if o.typed == nil || x.err != nil {
		return o
	}
	t := send.of
	if t == nil {
		t = recv.of
	}
	if t == nil {
		x.refuse(ErrType, "there is no datatype")
		return o
	}
	size := t.Size()
	x.elem.size, x.elem.typ, x.elem.of = max(int(size), 1), 0, nil
	x.dev.Call.Elem = x.elem.size
	f := o.typed
	o.user = func(in, inout []byte) error {
		if size == 0 {
			return nil
		}
		n := int64(len(inout)) / size
		if offset, ok := t.Contiguous(n); ok && offset == 0 && t.Extent() == size {
			return f(unsafe.Pointer(unsafe.SliceData(in)), unsafe.Pointer(unsafe.SliceData(inout)), int(n), t)
		}
		return onPlaces(f, in, inout, n, t)
	}
	o.typed = nil
	return o
}

// onPlaces calls a function on elements that are not contiguous, and lie packed in two slices.
func onPlaces(f func(in, inout unsafe.Pointer, count int, t *datatype.Type) error, in, inout []byte, n int64, t *datatype.Type) error {
	begin, end, err := t.Span(n)
	if err != nil {
		return err
	}
	low, high := min(begin, 0), max(end, 0)
	both := make([]byte, 2*(high-low))
	a, b := unsafe.Pointer(unsafe.SliceData(both[-low:])), unsafe.Pointer(unsafe.SliceData(both[high-2*low:]))
	t.Unpack(a, n, in, 0)
	t.Unpack(b, n, inout, 0)
	if err := f(a, b, int(n), t); err != nil {
		return err
	}
	t.Pack(inout, b, n, 0)
	return nil
}

// ReduceLocal sets inout to in ∘ inout, element by element. It sends nothing (MPI_Reduce_local).
func ReduceLocal(in, inout Buffer, op Op) error {
	x := &collectiveCall{call: call{op: "ReduceLocal", peer: Undefined, tag: Undefined}, elem: typedBy(in.of, nil)}
	op = x.typedOperation(op, &in, &inout)
	x.operation(op)
	a, b := x.contents(&in, true, false), x.contents(&inout, true, true)
	if x.err == nil && len(a) != len(b) {
		x.refuse(ErrCount, "in has %d bytes and inout %d", len(a), len(b))
	}
	if x.err != nil {
		return x.err
	}
	if x.dev.User != nil {
		if err := x.dev.User(a, b); err != nil {
			return x.call.error(ErrOther, err)
		}
	} else {
		f, err := reduction.Lookup(x.dev.Op, x.dev.Type)
		if err != nil {
			return x.call.error(ErrOp, err)
		}
		f(b, a)
	}
	x.place()
	return nil
}

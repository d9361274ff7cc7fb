package mpi

import (
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpi/datatype"
)

// Root is passed as the root rank by the root itself in a collective call on an intercommunicator (MPI_ROOT).
// The other ranks of its group pass ProcNull, and the ranks of the other group pass the root's rank.
const Root = -3

// The collective calls on intercommunicators (section 6.2.3) exchange data between both groups. All members of both
// groups must make these calls in the same order. A buffer has a block for each rank of the remote group. In-place
// calls are not possible. A buffer ignored on a rank may be the zero value.
//
// All messages of a call are sent concurrently, each directly to the rank that needs the data. This is simple,
// but not fast. Reductions combine the contributions in rank order, so all ranks get the same bits. If a call
// fails on a rank, that rank does not notify the other ranks, which wait until their contexts are done.

// interRound begins a call on an intercommunicator. Call.Ranks is the size of the remote group, for whose ranks buffers
// have blocks.
func (c *Comm) interRound(name string, e element) (*collectiveCall, *round) {
	x, o := c.newRound(name, e, (*call).checkInter)
	if x.err == nil {
		x.devOp.Call.Ranks = len(c.members)
	}
	return x, o
}

// checkInterRoot checks a root argument: Root if the caller is the root, ProcNull if the caller takes no part in the
// call, or else a rank of the remote group.
func (x *collectiveCall) checkInterRoot(root int) {
	if x.err == nil && root != Root && root != ProcNull && (root < 0 || root >= len(x.call.comm.members)) {
		x.recordError(ErrRoot, "there is no rank %s in the remote group: give one of 0 to %d, Root or ProcNull",
			rankText(root), len(x.call.comm.members)-1)
	}
}

// sendAll sends the same bytes to every rank of the remote group.
func (o *round) sendAll(b []byte) {
	for i := range o.x.call.comm.members {
		o.send(i, b)
	}
}

// recvAll receives blocks of equal length from every rank of the remote group.
func (o *round) recvAll(all []byte) {
	n := len(o.x.call.comm.members)
	for i := range n {
		o.recv(i, equalBlock(all, i, n))
	}
}

// sendEach sends every rank of the remote group its block; the blocks have equal length.
func (o *round) sendEach(all []byte) {
	n := len(o.x.call.comm.members)
	for i := range n {
		o.send(i, equalBlock(all, i, n))
	}
}

// recvBlocks is like recvAll, for blocks that may differ in length.
func (o *round) recvBlocks(all []byte, l coll.Layout) {
	for i, n := range l.Sizes {
		o.recv(i, blockAt(all, l.Offsets[i], n))
	}
}

// sendBlocks is like sendEach, for blocks that may differ in length.
func (o *round) sendBlocks(all []byte, l coll.Layout) {
	for i, n := range l.Sizes {
		o.send(i, blockAt(all, l.Offsets[i], n))
	}
}

// equalBlock returns block i of n blocks of equal length.
func equalBlock(all []byte, i, n int) []byte {
	size := len(all) / n
	return all[i*size : (i+1)*size]
}

// checkEqualBlocks rejects a buffer that cannot be divided into n blocks of equal length.
func (x *collectiveCall) checkEqualBlocks(name string, all []byte, n int) {
	if x.err == nil && (n == 0 && len(all) > 0 || n > 0 && len(all)%(n*x.elem.size) != 0) {
		x.recordError(ErrCount, "%s has %d elements, not blocks of equal length for %d ranks", name,
			x.elementCount(all), n)
	}
}

// interBarrier exchanges an empty message with each rank of the remote group. A rank need not wait for its own group.
func (c *Comm) interBarrier(name string) *round {
	_, o := c.interRound(name, element{size: 1})
	if o.assignTag() {
		for i := range c.members {
			o.recv(i, nil)
		}
		o.sendAll(nil)
	}
	return o
}

func (c *Comm) interBcast(name string, b *Buffer, root int) *round {
	x, o := c.interRound(name, elementOf(b.datatype, nil))
	x.checkInterRoot(root)
	var buf []byte
	if root != ProcNull {
		buf = x.contiguousBytes(b, root == Root, root != Root)
	}
	if o.assignTag() {
		if root == Root {
			o.sendAll(buf)
		} else {
			o.recv(root, buf)
		}
	}
	return o
}

// interGather implements Gather, or Gatherv if blocks is not nil.
func (c *Comm) interGather(name string, send, recv *Buffer, blocks *Blocks, root int) *round {
	of := send.datatype
	if root == Root {
		of = blocksType(recv, blocks)
	}
	x, o := c.interRound(name, elementOf(of, nil))
	x.checkInterRoot(root)
	if root == Root {
		return x.gatherRemote(o, recv, blocks)
	}
	var buf []byte
	if root != ProcNull {
		buf = x.contiguousBytes(send, true, false)
	}
	if o.assignTag() {
		o.send(root, buf)
	}
	return o
}

// blocksType returns the datatype of the given blocks, or that of the buffer b if blocks is nil.
func blocksType(b *Buffer, blocks *Blocks) *datatype.Type {
	if blocks != nil {
		return blocks.firstType()
	}
	return b.datatype
}

// gatherRemote receives a block from each rank of the remote group.
func (x *collectiveCall) gatherRemote(o *round, recv *Buffer, blocks *Blocks) *round {
	if blocks != nil {
		all, l := x.contiguousBlocks("recv", blocks, false, true)
		if o.assignTag() {
			o.recvBlocks(all, l)
		}
		return o
	}
	all := x.contiguousBytes(recv, false, true)
	x.checkEqualBlocks("recv", all, x.devOp.Call.Ranks)
	if o.assignTag() {
		o.recvAll(all)
	}
	return o
}

// blockAt returns n bytes at an offset, which may be out of range if n is 0.
func blockAt(all []byte, at, n int) []byte {
	if n == 0 {
		return nil
	}
	return all[at : at+n]
}

// interScatter implements Scatter, or Scatterv if blocks is not nil.
func (c *Comm) interScatter(name string, send *Buffer, blocks *Blocks, recv *Buffer, root int) *round {
	of := recv.datatype
	if root == Root {
		of = blocksType(send, blocks)
	}
	x, o := c.interRound(name, elementOf(of, nil))
	x.checkInterRoot(root)
	switch {
	case root == ProcNull:
		o.assignTag()
	case root != Root:
		buf := x.contiguousBytes(recv, false, true)
		if o.assignTag() {
			o.recv(root, buf)
		}
	case blocks != nil:
		all, l := x.contiguousBlocks("send", blocks, true, false)
		if o.assignTag() {
			o.sendBlocks(all, l)
		}
	default:
		all := x.contiguousBytes(send, true, false)
		x.checkEqualBlocks("send", all, x.devOp.Call.Ranks)
		if o.assignTag() {
			o.sendEach(all)
		}
	}
	return o
}

// interAllgather implements Allgather, or Allgatherv if blocks is not nil. Each group gets the blocks of the other one.
func (c *Comm) interAllgather(name string, send, recv *Buffer, blocks *Blocks) *round {
	x, o := c.interRound(name, elementOf(send.datatype, blocksType(recv, blocks)))
	mine := x.contiguousBytes(send, true, false)
	x.gatherRemote(o, recv, blocks)
	if x.err == nil {
		o.sendAll(mine)
	}
	return o
}

func (c *Comm) interAlltoall(name string, send, recv *Buffer) *round {
	x, o := c.interRound(name, elementOf(send.datatype, recv.datatype))
	from, to := x.contiguousBytes(send, true, false), x.contiguousBytes(recv, false, true)
	x.checkEqualBlocks("send", from, x.devOp.Call.Ranks)
	x.checkEqualBlocks("recv", to, x.devOp.Call.Ranks)
	if o.assignTag() {
		o.recvAll(to)
		o.sendEach(from)
	}
	return o
}

func (c *Comm) interAlltoallv(name string, send, recv *Blocks) *round {
	x, o := c.interRound(name, elementOf(send.firstType(), recv.firstType()))
	from, out := x.contiguousBlocks("send", send, true, false)
	to, in := x.contiguousBlocks("recv", recv, false, true)
	if o.assignTag() {
		o.recvBlocks(to, in)
		o.sendBlocks(from, out)
	}
	return o
}

func (c *Comm) interReduce(name string, send, recv *Buffer, op Op, root int) *round {
	of := send
	if root == Root {
		of = recv
	}
	x, o := c.interRound(name, elementOf(of.datatype, nil))
	x.checkInterRoot(root)
	switch root {
	case ProcNull:
		o.assignTag()
	case Root:
		x.setOperation(op, of, of)
		o.recvReduced(x.contiguousBytes(recv, false, true), 0, 0)
	default:
		x.setOperation(op, of, of)
		if buf := x.contiguousBytes(send, true, false); o.assignTag() {
			o.send(root, buf)
		}
	}
	return o
}

// recvReduced receives a vector from each rank of the remote group and reduces these vectors. It stores the result in
// into, except for its first skip and last rest bytes.
func (o *round) recvReduced(into []byte, skip, rest int) {
	if !o.assignTag() {
		return
	}
	n := len(o.x.call.comm.members)
	o.blocks = growBytes(o.blocks, n*(skip+len(into)+rest))
	o.reduceBlocks, o.result, o.skip = true, into, skip
	o.recvAll(o.blocks)
}

// interAllreduce gives each group the reduction of the other group's vectors.
func (c *Comm) interAllreduce(name string, send, recv *Buffer, op Op) *round {
	x, o := c.interRound(name, elementOf(send.datatype, recv.datatype))
	x.setOperation(op, send, recv)
	from, to := x.contiguousBytes(send, true, false), x.contiguousBytes(recv, false, true)
	if x.err == nil && len(from) != len(to) {
		x.recordError(ErrCount, "send has %d elements and recv %d: they must have as many", x.elementCount(from),
			x.elementCount(to))
	}
	o.recvReduced(to, 0, 0)
	if x.err == nil {
		o.sendAll(from)
	}
	return o
}

// interReduceScatter reduces the vectors of the remote group. counts divides the result among the ranks of the local
// group; the remote group may divide its result differently.
func (c *Comm) interReduceScatter(name string, send, recv *Buffer, counts []int, op Op) *round {
	x, o := c.interRound(name, elementOf(send.datatype, recv.datatype))
	x.setOperation(op, send, recv)
	from, to := x.contiguousBytes(send, true, false), x.contiguousBytes(recv, false, true)
	if x.err == nil && len(counts) != c.Size() {
		x.recordError(ErrCount, "there are %d counts for %d ranks", len(counts), c.Size())
	}
	skip, sum := 0, 0
	for i, n := range counts {
		if x.err != nil {
			break
		}
		if n < 0 || n > x.elementCount(from)-sum {
			x.recordError(ErrCount, "the block of rank %d has %d elements, and send %d in all", i, n, x.elementCount(from))
			break
		}
		if i == c.rank {
			skip = sum * x.elem.size
		}
		sum += n
	}
	if x.err == nil && (sum != x.elementCount(from) || counts[c.rank]*x.elem.size != len(to)) {
		x.recordError(ErrCount, "send has %d elements and recv %d, and the counts are %v", x.elementCount(from),
			x.elementCount(to),
			counts)
	}
	return x.recvAllVectors(o, from, to, skip)
}

func (c *Comm) interReduceScatterBlock(name string, send, recv *Buffer, op Op) *round {
	x, o := c.interRound(name, elementOf(send.datatype, recv.datatype))
	x.setOperation(op, send, recv)
	from, to := x.contiguousBytes(send, true, false), x.contiguousBytes(recv, false, true)
	if x.err == nil && len(from) != len(to)*c.Size() {
		x.recordError(ErrCount, "send has %d elements: %d ranks get %d each", x.elementCount(from), c.Size(),
			x.elementCount(to))
	}
	skip := 0
	if x.err == nil {
		skip = c.rank * len(to)
	}
	return x.recvAllVectors(o, from, to, skip)
}

// recvAllVectors makes each rank receive all vectors of the other group in full, because that group does not
// know how this group divides them into blocks.
func (x *collectiveCall) recvAllVectors(o *round, from, to []byte, skip int) *round {
	o.recvReduced(to, skip, len(from)-skip-len(to))
	if x.err == nil {
		o.sendAll(from)
	}
	return o
}

package mpi

import (
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpi/datatype"
)

// Root is passed as the root rank by the root itself in a collective call on an intercommunicator (MPI_ROOT).
// The other ranks of its group pass ProcNull, and the ranks of the other group pass the root's rank.
const Root = -3

// The collective calls on intercommunicators (section 6.2.3) exchange data between both groups. All members of
// both groups must make these calls in the same order. A buffer has a block for each rank of the remote group.
// In-place calls are not possible. A buffer that is ignored on a rank may be the zero value.
//
// All messages of a call are sent concurrently, each directly to the rank that needs the data. This is simple,
// but not fast. Reductions combine the contributions in rank order, so all ranks get the same bits. If a call
// fails on a rank, that rank does not notify the other ranks, which wait until their contexts are done.

func (c *Comm) interRound(name string, e element) (*collectiveCall, *round) {
	x, o := c.pairwise(name, e, (*call).checkInter)
	if x.err == nil {
		x.dev.Call.Ranks = len(c.members)
	}
	return x, o
}

// interRoot checks a root. The caller is the root if root is Root; it does not take part in the call if root is
// ProcNull.
func (x *collectiveCall) interRoot(root int) {
	if x.err == nil && root != Root && root != ProcNull && (root < 0 || root >= len(x.call.comm.members)) {
		x.refuse(ErrRoot, "there is no rank %s in the remote group: give one of 0 to %d, Root or ProcNull",
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
		o.recv(i, nth(all, i, n))
	}
}

// sendEach sends every rank of the remote group its block; the blocks have equal length.
func (o *round) sendEach(all []byte) {
	n := len(o.x.call.comm.members)
	for i := range n {
		o.send(i, nth(all, i, n))
	}
}

// recvBlocks is like recvAll, for blocks that may differ in length.
func (o *round) recvBlocks(all []byte, l coll.Layout) {
	for i, n := range l.Sizes {
		o.recv(i, part(all, l.Offsets[i], n))
	}
}

// sendBlocks is like sendEach, for blocks that may differ in length.
func (o *round) sendBlocks(all []byte, l coll.Layout) {
	for i, n := range l.Sizes {
		o.send(i, part(all, l.Offsets[i], n))
	}
}

// nth returns block i of n blocks of equal length.
func nth(all []byte, i, n int) []byte {
	size := len(all) / n
	return all[i*size : (i+1)*size]
}

// equalBlocks rejects a buffer that cannot be divided into n blocks of equal length.
func (x *collectiveCall) equalBlocks(name string, all []byte, n int) {
	if x.err == nil && (n == 0 && len(all) > 0 || n > 0 && len(all)%(n*x.elem.size) != 0) {
		x.refuse(ErrCount, "%s has %d elements, which are no blocks of one length for %d ranks", name, x.count(all), n)
	}
}

func (c *Comm) interBarrier(name string) *round {
	_, o := c.interRound(name, element{size: 1})
	if o.begin() {
		for i := range c.members {
			o.recv(i, nil)
		}
		o.sendAll(nil)
	}
	return o
}

func (c *Comm) interBcast(name string, b *Buffer, root int) *round {
	x, o := c.interRound(name, typedBy(b.of, nil))
	x.interRoot(root)
	var buf []byte
	if root != ProcNull {
		buf = x.contents(b, root == Root, root != Root)
	}
	if o.begin() {
		if root == Root {
			o.sendAll(buf)
		} else {
			o.recv(root, buf)
		}
	}
	return o
}

func (c *Comm) interGather(name string, send, recv *Buffer, blocks *Blocks, root int) *round {
	of := send.of
	if root == Root {
		of = typeIn(recv, blocks)
	}
	x, o := c.interRound(name, typedBy(of, nil))
	x.interRoot(root)
	if root == Root {
		return x.collectFrom(o, recv, blocks)
	}
	var buf []byte
	if root != ProcNull {
		buf = x.contents(send, true, false)
	}
	if o.begin() {
		o.send(root, buf)
	}
	return o
}

// typeIn returns the datatype of blocks, or the datatype of b if blocks is nil.
func typeIn(b *Buffer, blocks *Blocks) *datatype.Type {
	if blocks != nil {
		return blocks.first()
	}
	return b.of
}

// collectFrom receives a block from each rank of the remote group.
func (x *collectiveCall) collectFrom(o *round, recv *Buffer, blocks *Blocks) *round {
	if blocks != nil {
		all, l := x.blocks("recv", blocks, false, true)
		if o.begin() {
			o.recvBlocks(all, l)
		}
		return o
	}
	all := x.contents(recv, false, true)
	x.equalBlocks("recv", all, x.dev.Call.Ranks)
	if o.begin() {
		o.recvAll(all)
	}
	return o
}

// part returns n bytes at an offset. If n is 0, the offset may be out of range.
func part(all []byte, at, n int) []byte {
	if n == 0 {
		return nil
	}
	return all[at : at+n]
}

func (c *Comm) interScatter(name string, send *Buffer, blocks *Blocks, recv *Buffer, root int) *round {
	of := recv.of
	if root == Root {
		of = typeIn(send, blocks)
	}
	x, o := c.interRound(name, typedBy(of, nil))
	x.interRoot(root)
	switch {
	case root == ProcNull:
		o.begin()
	case root != Root:
		buf := x.contents(recv, false, true)
		if o.begin() {
			o.recv(root, buf)
		}
	case blocks != nil:
		all, l := x.blocks("send", blocks, true, false)
		if o.begin() {
			o.sendBlocks(all, l)
		}
	default:
		all := x.contents(send, true, false)
		x.equalBlocks("send", all, x.dev.Call.Ranks)
		if o.begin() {
			o.sendEach(all)
		}
	}
	return o
}

func (c *Comm) interAllgather(name string, send, recv *Buffer, blocks *Blocks) *round {
	x, o := c.interRound(name, typedBy(send.of, typeIn(recv, blocks)))
	mine := x.contents(send, true, false)
	x.collectFrom(o, recv, blocks)
	if x.err == nil {
		o.sendAll(mine)
	}
	return o
}

func (c *Comm) interAlltoall(name string, send, recv *Buffer) *round {
	x, o := c.interRound(name, typedBy(send.of, recv.of))
	from, to := x.contents(send, true, false), x.contents(recv, false, true)
	x.equalBlocks("send", from, x.dev.Call.Ranks)
	x.equalBlocks("recv", to, x.dev.Call.Ranks)
	if o.begin() {
		o.recvAll(to)
		o.sendEach(from)
	}
	return o
}

func (c *Comm) interAlltoallv(name string, send, recv *Blocks) *round {
	x, o := c.interRound(name, typedBy(send.first(), recv.first()))
	from, out := x.blocks("send", send, true, false)
	to, in := x.blocks("recv", recv, false, true)
	if o.begin() {
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
	x, o := c.interRound(name, typedBy(of.of, nil))
	x.interRoot(root)
	switch root {
	case ProcNull:
		o.begin()
	case Root:
		x.operation(op, of, of)
		o.combined(x.contents(recv, false, true), 0, 0)
	default:
		x.operation(op, of, of)
		if buf := x.contents(send, true, false); o.begin() {
			o.send(root, buf)
		}
	}
	return o
}

// combined receives a vector from each rank of the remote group. The vectors are reduced, and the result is
// stored in into without its first skip and last rest bytes.
func (o *round) combined(into []byte, skip, rest int) {
	if !o.begin() {
		return
	}
	n := len(o.x.call.comm.members)
	o.blocks = grown(o.blocks, n*(skip+len(into)+rest))
	o.combine, o.into, o.skip = true, into, skip
	o.recvAll(o.blocks)
}

func (c *Comm) interAllreduce(name string, send, recv *Buffer, op Op) *round {
	x, o := c.interRound(name, typedBy(send.of, recv.of))
	x.operation(op, send, recv)
	from, to := x.contents(send, true, false), x.contents(recv, false, true)
	if x.err == nil && len(from) != len(to) {
		x.refuse(ErrCount, "send has %d elements and recv %d: they must have as many", x.count(from), x.count(to))
	}
	o.combined(to, 0, 0)
	if x.err == nil {
		o.sendAll(from)
	}
	return o
}

func (c *Comm) interReduceScatter(name string, send, recv *Buffer, counts []int, op Op) *round {
	x, o := c.interRound(name, typedBy(send.of, recv.of))
	x.operation(op, send, recv)
	from, to := x.contents(send, true, false), x.contents(recv, false, true)
	if x.err == nil && len(counts) != c.Size() {
		x.refuse(ErrCount, "there are %d counts for %d ranks", len(counts), c.Size())
	}
	skip, sum := 0, 0
	for i, n := range counts {
		if x.err != nil {
			break
		}
		if n < 0 || n > x.count(from)-sum {
			x.refuse(ErrCount, "the block of rank %d has %d elements, and send %d in all", i, n, x.count(from))
			break
		}
		if i == c.rank {
			skip = sum * x.elem.size
		}
		sum += n
	}
	if x.err == nil && (sum != x.count(from) || counts[c.rank]*x.elem.size != len(to)) {
		x.refuse(ErrCount, "send has %d elements and recv %d, and the counts are %v", x.count(from), x.count(to),
			counts)
	}
	return x.scatterCombined(o, from, to, skip)
}

func (c *Comm) interReduceScatterBlock(name string, send, recv *Buffer, op Op) *round {
	x, o := c.interRound(name, typedBy(send.of, recv.of))
	x.operation(op, send, recv)
	from, to := x.contents(send, true, false), x.contents(recv, false, true)
	if x.err == nil && len(from) != len(to)*c.Size() {
		x.refuse(ErrCount, "send has %d elements: %d ranks get %d each", x.count(from), c.Size(), x.count(to))
	}
	skip := 0
	if x.err == nil {
		skip = c.rank * len(to)
	}
	return x.scatterCombined(o, from, to, skip)
}

// scatterCombined makes each rank receive all vectors of the other group in full, because that group does not
// know how this group divides them into blocks.
func (x *collectiveCall) scatterCombined(o *round, from, to []byte, skip int) *round {
	o.combined(to, skip, len(from)-skip-len(to))
	if x.err == nil {
		o.sendAll(from)
	}
	return o
}

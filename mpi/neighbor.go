package mpi

import "context"

// The neighbourhood collectives (section 8.6) exchange data along the edges of a communicator's topology. All
// members must make these calls in the same order. send has a block for each destination, and recv has a block
// for each source, in the order of GraphNeighbors or DistGraphNeighbors. In a grid, both the sources and the
// destinations are the lower and the upper neighbour in each dimension. Beyond an edge of a grid, the neighbour
// is ProcNull: its block is part of the buffer, but is neither sent nor written. In a ring of one or two ranks,
// a message sent upwards is received from below.
//
// All messages of a call are sent concurrently. The error is ErrTopology if the communicator has no topology.
// If a call fails on a rank, that rank does not notify the other ranks, which wait until their contexts are
// done. In-place calls are not possible.

// NeighborAllgather receives the send buffer of each source and concatenates these buffers in recv.
func (c *Comm) NeighborAllgather(ctx context.Context, send, recv Buffer) error {
	return c.neighborAllgather("NeighborAllgather", &send, &recv, nil).wait(ctx)
}

// IneighborAllgather starts NeighborAllgather and returns.
func (c *Comm) IneighborAllgather(send, recv Buffer) (Request, error) {
	return c.neighborAllgather("IneighborAllgather", &send, &recv, nil).start()
}

// NeighborAllgatherv is NeighborAllgather for blocks that may differ in length.
func (c *Comm) NeighborAllgatherv(ctx context.Context, send Buffer, recv Blocks) error {
	return c.neighborAllgather("NeighborAllgatherv", &send, nil, &recv).wait(ctx)
}

// IneighborAllgatherv starts NeighborAllgatherv and returns.
func (c *Comm) IneighborAllgatherv(send Buffer, recv Blocks) (Request, error) {
	return c.neighborAllgather("IneighborAllgatherv", &send, nil, &recv).start()
}

// NeighborAlltoall sends a block of send to each destination, and receives a block from each source. All blocks of a
// buffer must have the same length.
func (c *Comm) NeighborAlltoall(ctx context.Context, send, recv Buffer) error {
	return c.neighborAlltoall("NeighborAlltoall", &send, &recv).wait(ctx)
}

// IneighborAlltoall starts NeighborAlltoall and returns.
func (c *Comm) IneighborAlltoall(send, recv Buffer) (Request, error) {
	return c.neighborAlltoall("IneighborAlltoall", &send, &recv).start()
}

// NeighborAlltoallv is NeighborAlltoall for blocks that may differ in length and datatype (MPI_Neighbor_alltoallw).
func (c *Comm) NeighborAlltoallv(ctx context.Context, send, recv Blocks) error {
	return c.neighborAlltoallv("NeighborAlltoallv", &send, &recv).wait(ctx)
}

// IneighborAlltoallv starts NeighborAlltoallv and returns.
func (c *Comm) IneighborAlltoallv(send, recv Blocks) (Request, error) {
	return c.neighborAlltoallv("IneighborAlltoallv", &send, &recv).start()
}

// neighborhood is a round whose messages follow the edges of a topology.
type neighborhood struct {
	*round
	x                     *collectiveCall
	sources, destinations []int
	// isGrid is set for a Cartesian topology. In a grid, a message that was sent upwards arrives from below.
	isGrid bool
	// hasHoles is set if some receive blocks are not written, because their source is ProcNull.
	hasHoles bool
}

func (c *Comm) newNeighborhood(name string, e element) *neighborhood {
	x, o := c.newRound(name, e, (*call).checkTopology)
	n := &neighborhood{round: o, x: x}
	if x.err != nil {
		return n
	}
	n.sources, n.destinations = c.topology.neighbours(c.rank)
	n.isGrid = c.topology.kind() == Cartesian
	for _, r := range n.sources {
		n.hasHoles = n.hasHoles || r == ProcNull
	}
	return n
}

// checkTopology is like check, but also rejects a communicator without a topology.
func (k *call) checkTopology() error {
	if err := k.check(); err != nil {
		return err
	}
	if k.comm.topology == nil {
		return k.failf(ErrTopology, "%v has no topology", k.comm)
	}
	return nil
}

// postRecvs posts the receives in the order in which the sources send, because messages on several edges between the
// same two ranks match in that order. In each dimension of a grid, a rank sends to its lower neighbour first, so
// postRecvs first posts the receive from above.
func (n *neighborhood) postRecvs(block func(i int) []byte) {
	for i := range n.sources {
		if n.isGrid {
			i ^= 1
		}
		n.recv(n.sources[i], block(i))
	}
}

// blockFunc returns a function that returns block i of a buffer with one block for each of the given number of ranks.
func (x *collectiveCall) blockFunc(ranks int, name string, b *Blocks, load, back bool) func(i int) []byte {
	x.devOp.Call.Ranks = ranks
	all, l := x.contiguousBlocks(name, b, load, back)
	return func(i int) []byte { return blockAt(all, l.Offsets[i], l.Sizes[i]) }
}

// equalBlockFunc is like blockFunc for blocks of equal length.
func (x *collectiveCall) equalBlockFunc(ranks int, name string, all []byte) func(i int) []byte {
	x.checkEqualBlocks(name, all, ranks)
	return func(i int) []byte { return equalBlock(all, i, ranks) }
}

// recvBlockFunc returns a function that returns block i of the receive buffer.
func (n *neighborhood) recvBlockFunc(recv *Buffer, blocks *Blocks) func(i int) []byte {
	if blocks != nil {
		return n.x.blockFunc(len(n.sources), "recv", blocks, n.hasHoles, true)
	}
	return n.x.equalBlockFunc(len(n.sources), "recv", n.x.contiguousBytes(recv, n.hasHoles, true))
}

// neighborAllgather implements NeighborAllgather, or NeighborAllgatherv if blocks is not nil.
func (c *Comm) neighborAllgather(name string, send, recv *Buffer, blocks *Blocks) *round {
	n := c.newNeighborhood(name, elementOf(send.datatype, blocksType(recv, blocks)))
	mine := n.x.contiguousBytes(send, true, false)
	block := n.recvBlockFunc(recv, blocks)
	if n.assignTag() {
		n.postRecvs(block)
		for _, r := range n.destinations {
			n.send(r, mine)
		}
	}
	return n.round
}

func (c *Comm) neighborAlltoall(name string, send, recv *Buffer) *round {
	n := c.newNeighborhood(name, elementOf(send.datatype, recv.datatype))
	out := n.x.equalBlockFunc(len(n.destinations), "send", n.x.contiguousBytes(send, true, false))
	in := n.recvBlockFunc(recv, nil)
	n.exchange(out, in)
	return n.round
}

func (c *Comm) neighborAlltoallv(name string, send, recv *Blocks) *round {
	n := c.newNeighborhood(name, elementOf(send.firstType(), recv.firstType()))
	out := n.x.blockFunc(len(n.destinations), "send", send, true, false)
	in := n.recvBlockFunc(nil, recv)
	n.exchange(out, in)
	return n.round
}

func (n *neighborhood) exchange(out, in func(i int) []byte) {
	if n.assignTag() {
		n.postRecvs(in)
		for i, r := range n.destinations {
			n.send(r, out(i))
		}
	}
}

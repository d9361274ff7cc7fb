package coll

// This file contains helpers for algorithms on shared buffers. A shared buffer is memory of a rank that the other ranks
// on its host have mapped. A rank copies its contribution there and publishes it; the other ranks await the publication
// and read the contribution. Without messages, a call costs only the copies, and scheduling each rank once, which
// dominates if ranks share cores.
//
// Vectors too long for the buffer are divided into chunks, which alternate between the two halves of the buffer. While
// a rank writes chunk i, the other ranks may still be reading chunk i−1, but not chunk i−2: in each algorithm, a rank
// publishes again when it has read a chunk, and the writer awaits that publication. The executor protects the data of
// the previous call in the same way.

// chunk describes a part of the vectors or blocks that a call processes at a time.
type chunk struct {
	// number is the number of the chunk, from 0 to count−1. off is its offset and n its length, in bytes.
	number, count, off, n int
	// loc is the chunk's location in the shared buffer.
	loc Loc
}

// isReused reports whether a later chunk overwrites this one in the shared buffer.
func (k chunk) isReused() bool { return k.number+2 < k.count }

// addChunks divides n bytes into chunks, and calls part to add the steps for each chunk. It makes the chunks short
// enough that the shared buffer, or half of it for several chunks, can hold the given number of pieces of a chunk's
// length.
func (s *Schedule) addChunks(call *Call, n, pieces int, part func(*Call, *Schedule, chunk)) {
	s.InOrder = true
	room := call.Shared / pieces
	if n <= room {
		if n > 0 {
			part(call, s, chunk{count: 1, n: n, loc: Loc{Buf: Shared}})
		}
		return
	}
	size := room / 2
	size -= size % call.Elem
	count := (n + size - 1) / size
	s.rounds(count, func(i int) {
		part(call, s, chunk{number: i, count: count, off: i * size, n: min(size, n-i*size),
			loc: Loc{Shared, i % 2 * size * pieces}})
	})
}

// MaxChunks is the maximum number of chunks in a call. A rank publishes at most twice per chunk.
const MaxChunks = 1 << 22

// requireShared requires shared buffers that can hold two chunks with the given number of pieces each.
func (c *Call) requireShared(pieces int) string {
	switch {
	case c.Shared == 0:
		return "the ranks must have shared buffers, like ranks of one host"
	case c.Shared/pieces/2 < max(c.Elem, 1):
		return "the shared buffers must hold two elements of each piece"
	case c.Bytes/(c.Shared/pieces/2) > MaxChunks:
		return "the vectors are too long for the shared buffers"
	}
	return requireUniform(c)
}

// requireSharedOne is requireShared for one piece (a vector or a block) per chunk, and requireSharedAll for one piece
// per rank.
func requireSharedOne(c *Call) string { return c.requireShared(1) }
func requireSharedAll(c *Call) string { return c.requireShared(c.Ranks) }

// publish adds a StepPublish.
func (s *Schedule) publish() { s.add(Step{Kind: StepPublish}, nil) }

// await waits until a rank, or every other rank, has made count publications in this call.
func (s *Schedule) await(peer, count int) {
	if count > 0 {
		s.add(Step{Kind: StepAwait, Peer: peer, Count: count}, nil)
	}
}

// read copies from a rank's shared buffer.
func (s *Schedule) read(rank int, from, into Loc, n int) {
	s.add(Step{Kind: StepCopy, Peer: rank, From: from, Into: into, Len: n}, nil)
}

// reducePair sets into = left ∘ right, one of which is in a rank's shared buffer.
func (s *Schedule) reducePair(rank int, left, right, into Loc, n int) {
	if n > 0 {
		s.add(Step{Kind: StepReduce, Peer: rank, From: left, With: right, Into: into, Len: n}, nil)
	}
}

// reduceFrom sets into = from ∘ into, where from is in a rank's shared buffer.
func (s *Schedule) reduceFrom(rank int, from, into Loc, n int) {
	if n > 0 {
		s.add(Step{Kind: StepReduce, Peer: rank, From: from, Into: into, Len: n}, nil)
	}
}

// combineAll combines the contributions of ranks 0 to last, at from in their shared buffers, and stores the result at
// into. It begins with rank last, so that operands are in rank order and all ranks compute the same bits. If the caller
// is one of the last two ranks, combineAll reads its contribution at own rather than in its shared buffer, and combines
// the two without a copy.
func (s *Schedule) combineAll(caller, last int, from, own, into Loc, n int) {
	next := last - 2
	switch {
	case last > 0 && caller == last:
		s.reducePair(last-1, from, own, into, n)
	case caller == last-1:
		s.reducePair(last, own, from, into, n)
	case caller == last: // it is rank 0
		if own != into {
			s.copy(into, own, n)
		}
	default:
		s.read(last, from, into, n)
		next = last - 1
	}
	for r := next; r >= 0; r-- {
		s.reduceFrom(r, from, into, n)
	}
}

// combineBlocks combines this rank's block of the chunk from the vectors of all ranks, in its own shared buffer. The
// first publication means that the chunk can be read, the second that the rank's block is combined.
func (c *Call) combineBlocks(schedule *Schedule, k chunk) {
	schedule.copy(k.loc, c.inputLoc().offset(k.off), k.n)
	schedule.publish()
	lo, hi := c.partOffset(k.n, c.Ranks, c.Rank), c.partOffset(k.n, c.Ranks, c.Rank+1)
	for i := 1; i < c.Ranks; i++ {
		r := (c.Rank + i) % c.Ranks
		schedule.await(r, 2*k.number+1)
		schedule.reduceFrom(r, k.loc.offset(lo), k.loc.offset(lo), hi-lo)
	}
	schedule.publish()
}

// copyBlocks copies the combined blocks of all ranks to the receive buffer.
func (c *Call) copyBlocks(schedule *Schedule, k chunk) {
	for i := range c.Ranks {
		r := (c.Rank + i) % c.Ranks
		if i > 0 {
			schedule.await(r, 2*k.number+2)
		}
		if lo, hi := c.partOffset(k.n, c.Ranks, r), c.partOffset(k.n, c.Ranks, r+1); hi > lo {
			schedule.read(r, k.loc.offset(lo), Loc{RecvBuf, k.off + lo}, hi-lo)
		}
	}
}

// costOfCombining is the cost of algorithms in which each rank copies n bytes to its shared buffer, and then combines n
// bytes of all ranks. Reading the first operand costs as much as combining, except with two ranks.
func costOfCombining(ranks, n int) Cost {
	cost := Cost{Rounds: 1, Bytes: n, Reduced: ranks * n}
	if ranks == 2 {
		cost.Reduced = n
	}
	return cost
}

const sharedSource = "Graham, Shipman, MPI Support for Multi-core Architectures: Optimized Shared Memory Collectives " +
	"(2008), 3"

package coll

// What the algorithms have in common that use shared buffers: memory of each rank that the
// others of its host map. A rank copies its contribution there and publishes that; the others
// await the publication and read. There are no messages, so a call takes the copies, and each
// rank that has to be scheduled once, which counts most where ranks share cores.
//
// Vectors that are too long for the buffer go in chunks, which use one half of it and the other
// in turn. When a rank writes chunk i, the others may still read chunk i−1, but not chunk i−2: in
// each algorithm, a rank publishes once more when it has read that, and the writer awaits it.
// The executor takes care of what the call before has written there.

// chunk is a part of the vectors, or of the blocks, of a call.
type chunk struct {
	// number is from 0 on, of count; off is where it begins and n its length in bytes.
	number, count, off, n int
	// at is where it is in the shared buffer.
	at Loc
}

// reused reports whether its place in the shared buffer is written to once more.
func (k chunk) reused() bool { return k.number+2 < k.count }

// inChunks cuts n bytes so that pieces of that length fit into the shared buffer, and adds a
// part to the schedule for each chunk.
func (s *Schedule) inChunks(c *Call, n, pieces int, part func(*Call, *Schedule, chunk)) {
	s.InOrder = true
	room := c.Shared / pieces
	if n <= room {
		if n > 0 {
			part(c, s, chunk{count: 1, n: n, at: Loc{Buf: Shared}})
		}
		return
	}
	size := room / 2
	size -= size % c.Elem
	count := (n + size - 1) / size
	s.rounds(count, func(i int) {
		part(c, s, chunk{number: i, count: count, off: i * size, n: min(size, n-i*size), at: Loc{Shared, i % 2 * size * pieces}})
	})
}

// MostChunks bounds the chunks of a call. A rank makes two publications for each at most.
const MostChunks = 1 << 22

// shares says whether there are shared buffers, with room for two chunks of so many pieces.
func (c *Call) shares(pieces int) string {
	switch {
	case c.Shared == 0:
		return "the ranks must have shared buffers, as those of one host"
	case c.Shared/pieces/2 < max(c.Elem, 1):
		return "the shared buffers must have room for two elements of each piece"
	case c.Bytes/(c.Shared/pieces/2) > MostChunks:
		return "the vectors are too long for the shared buffers"
	}
	return uniform(c)
}

// sharesOne and sharesAll are shares of a vector, and of a block for each rank.
func sharesOne(c *Call) string { return c.shares(1) }
func sharesAll(c *Call) string { return c.shares(c.Ranks) }

// publish publishes what was written.
func (s *Schedule) publish() { s.add(Step{Kind: StepPublish}, nil) }

// await waits until a rank has made so many publications in this call.
func (s *Schedule) await(peer, count int) {
	if count > 0 {
		s.add(Step{Kind: StepAwait, Peer: peer, Count: count}, nil)
	}
}

// read copies from the shared buffer of a rank.
func (s *Schedule) read(rank int, from, into Loc, n int) {
	s.add(Step{Kind: StepCopy, Peer: rank, From: from, Into: into, Len: n}, nil)
}

// reduceFrom is into = from ∘ into, with from in the shared buffer of a rank.
func (s *Schedule) reduceFrom(rank int, from, into Loc, n int) {
	if n > 0 {
		s.add(Step{Kind: StepReduce, Peer: rank, From: from, Into: into, Len: n}, nil)
	}
}

// combineAll combines what the ranks 0 to last have at from, into a place that is not read.
// It begins with the last one, so that the order of ranks is kept, and every rank that does so
// gets the same bits.
func (s *Schedule) combineAll(last int, from, into Loc, n int) {
	s.read(last, from, into, n)
	for r := last - 1; r >= 0; r-- {
		s.reduceFrom(r, from, into, n)
	}
}

// combineBlocks has each rank combine one block of the chunk, of all ranks, in its own shared
// buffer. Two publications say that the chunk is there, and that the block is combined.
func (c *Call) combineBlocks(s *Schedule, k chunk) {
	s.copy(k.at, c.input().at(k.off), k.n)
	s.publish()
	lo, hi := c.cut(k.n, c.Ranks, c.Rank), c.cut(k.n, c.Ranks, c.Rank+1)
	for i := 1; i < c.Ranks; i++ {
		r := (c.Rank + i) % c.Ranks
		s.await(r, 2*k.number+1)
		s.reduceFrom(r, k.at.at(lo), k.at.at(lo), hi-lo)
	}
	s.publish()
}

// takeBlocks copies the blocks that were combined to the receive buffer.
func (c *Call) takeBlocks(s *Schedule, k chunk) {
	for i := range c.Ranks {
		r := (c.Rank + i) % c.Ranks
		if i > 0 {
			s.await(r, 2*k.number+2)
		}
		if lo, hi := c.cut(k.n, c.Ranks, r), c.cut(k.n, c.Ranks, r+1); hi > lo {
			s.read(r, k.at.at(lo), Loc{RecvBuf, k.off + lo}, hi-lo)
		}
	}
}

const sharedSource = "Graham, Shipman, MPI Support for Multi-core Architectures: Optimized Shared Memory Collectives (2008), 3"

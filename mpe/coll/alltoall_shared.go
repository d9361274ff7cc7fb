package coll

// alltoallShared is Alltoall through shared buffers: each rank copies its blocks to its shared buffer, and reads
// the blocks for it from the buffers of the other ranks.
//
//	T = α + (2p − 1)·n·β, n bytes a block
var alltoallShared = &Algorithm{
	Name:        "shared",
	Source:      sharedSource,
	Shares:      true,
	unsupported: requireSharedAll,
	build: func(c *Call, s *Schedule) {
		s.addChunks(c, c.Bytes, c.Ranks, func(c *Call, s *Schedule, k chunk) {
			behind := c.Rank + 1
			s.pack(k.loc, c.inputLoc().offset(k.off), k.n, c.Rank, c.Bytes)
			s.pack(k.loc.offset(behind*k.n), c.inputLoc().offset(behind*c.Bytes+k.off), k.n, c.Ranks-behind, c.Bytes)
			s.publish()
			if own := c.Rank*c.Bytes + k.off; !c.InPlace {
				s.copy(Loc{RecvBuf, own}, c.inputLoc().offset(own), k.n)
			}
			for i := 1; i < c.Ranks; i++ {
				r := (c.Rank + i) % c.Ranks
				s.await(r, k.number+1)
				s.read(r, k.loc.offset(c.Rank*k.n), Loc{RecvBuf, r*c.Bytes + k.off}, k.n)
			}
		})
	},
	cost: func(c *Call) Cost { return Cost{Rounds: 1, Bytes: (2*c.Ranks - 1) * c.Bytes} },
}

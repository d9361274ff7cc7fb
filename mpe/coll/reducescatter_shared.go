package coll

// reduceScatterShared is ReduceScatter through shared buffers: each rank copies its vector to its shared buffer, and
// combines its own block of all vectors.
//
//	T = α + p·n·(β + γ), n bytes a block
var reduceScatterShared = &Algorithm{
	Name:        "shared",
	Source:      sharedSource,
	Shares:      true,
	unsupported: requireSharedAll,
	build: func(c *Call, s *Schedule) {
		s.addChunks(c, c.Bytes, c.Ranks, func(c *Call, s *Schedule, k chunk) {
			s.pack(k.loc, c.inputLoc().offset(k.off), k.n, c.Ranks, c.Bytes)
			s.publish()
			s.await(AllRanks, k.number+1)
			own := c.inputLoc().offset(c.Rank*c.Bytes + k.off)
			s.combineAll(c.Rank, c.Ranks-1, k.loc.offset(c.Rank*k.n), own, Loc{RecvBuf, k.off}, k.n)
		})
	},
	cost: func(c *Call) Cost {
		n := c.Ranks * c.Bytes
		return Cost{Rounds: 1, Bytes: n, Reduced: n}
	},
}

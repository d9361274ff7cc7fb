package coll

// reduceShared is Reduce through shared buffers: the root combines the vectors of all ranks.
//
//	T = α + n·β + p·n·γ
var reduceShared = &Algorithm{
	Name:   "shared",
	Source: sharedSource,
	Shares: true,
	fits:   sharesOne,
	build: func(c *Call, s *Schedule) {
		s.inChunks(c, c.Bytes, 1, func(c *Call, s *Schedule, k chunk) {
			if c.Rank != c.Root {
				s.await(c.Root, k.number-1) // the root has read chunk number−2
			}
			s.copy(k.at, c.input().at(k.off), k.n)
			if c.Rank != c.Root {
				s.publish()
				return
			}
			s.await(Everyone, k.number+1)
			s.combineAll(c.Ranks-1, k.at, Loc{RecvBuf, k.off}, k.n)
			if k.reused() {
				s.publish()
			}
		})
	},
	cost: func(c *Call) Cost {
		return Cost{Rounds: 1, Bytes: c.Bytes, Reduced: c.Ranks * c.Bytes}
	},
}

// reduceSharedBlocks is Reduce through shared buffers, for long vectors: each rank combines its block of all
// vectors, and the root copies the results.
//
//	T = 2α + 2n·β + n·γ
var reduceSharedBlocks = &Algorithm{
	Name:   "shared-blocks",
	Source: sharedSource,
	Shares: true,
	fits:   sharesUnordered,
	build: func(c *Call, s *Schedule) {
		s.inChunks(c, c.Bytes, 1, func(c *Call, s *Schedule, k chunk) {
			c.combineBlocks(s, k)
			if c.Rank == c.Root {
				c.takeBlocks(s, k)
			}
		})
	},
	cost: func(c *Call) Cost {
		return Cost{Rounds: 2, Bytes: 2 * c.Bytes, Reduced: c.Bytes}
	},
}

package coll

// reduceShared is Reduce through shared buffers: the root combines the vectors of all ranks.
//
//	T = α + n·β + p·n·γ
var reduceShared = &Algorithm{
	Name:        "shared",
	Source:      sharedSource,
	Shares:      true,
	unsupported: requireSharedOne,
	build: func(c *Call, s *Schedule) {
		s.addChunks(c, c.Bytes, 1, func(c *Call, s *Schedule, k chunk) {
			if c.Rank != c.Root {
				s.await(c.Root, k.number-1) // the root has read chunk number−2
			}
			s.copy(k.loc, c.inputLoc().offset(k.off), k.n)
			if c.Rank != c.Root {
				s.publish()
				return
			}
			s.await(AllRanks, k.number+1)
			s.combineAll(c.Ranks-1, k.loc, Loc{RecvBuf, k.off}, k.n)
			if k.isReused() {
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
	Name:        "shared-blocks",
	Source:      sharedSource,
	Shares:      true,
	unsupported: requireSharedComm,
	build: func(c *Call, s *Schedule) {
		s.addChunks(c, c.Bytes, 1, func(c *Call, s *Schedule, k chunk) {
			c.combineBlocks(s, k)
			if c.Rank == c.Root {
				c.copyBlocks(s, k)
			}
		})
	},
	cost: func(c *Call) Cost {
		return Cost{Rounds: 2, Bytes: 2 * c.Bytes, Reduced: c.Bytes}
	},
}

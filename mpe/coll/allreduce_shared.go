package coll

// allreduceShared is Allreduce through shared buffers, for short vectors or two ranks: each rank combines the vectors
// of all ranks.
//
//	T = α + n·β + p·n·γ; with two ranks, α + n·(β + γ)
var allreduceShared = &Algorithm{
	Name:        "shared",
	Source:      sharedSource,
	Shares:      true,
	unsupported: requireSharedOne,
	build: func(c *Call, s *Schedule) {
		s.addChunks(c, c.Bytes, 1, func(c *Call, s *Schedule, k chunk) {
			s.copy(k.loc, c.inputLoc().offset(k.off), k.n)
			s.publish()
			s.await(AllRanks, k.number+1)
			s.combineAll(c.Rank, c.Ranks-1, k.loc, c.inputLoc().offset(k.off), Loc{RecvBuf, k.off}, k.n)
		})
	},
	cost: func(c *Call) Cost { return costOfCombining(c.Ranks, c.Bytes) },
}

// allreduceSharedBlocks is Allreduce through shared buffers, for long vectors: each rank combines its block of all
// vectors, and then copies the blocks that the other ranks have combined.
//
//	T = 2α + 2n·β + n·γ
var allreduceSharedBlocks = &Algorithm{
	Name:        "shared-blocks",
	Source:      sharedSource,
	Shares:      true,
	unsupported: requireSharedComm,
	build: func(c *Call, s *Schedule) {
		s.addChunks(c, c.Bytes, 1, func(c *Call, s *Schedule, k chunk) {
			c.combineBlocks(s, k)
			c.copyBlocks(s, k)
		})
	},
	cost: func(c *Call) Cost {
		return Cost{Rounds: 2, Bytes: 2 * c.Bytes, Reduced: c.Bytes}
	},
}

// requireSharedComm is like requireSharedOne, but also requires a commutative operation. It is for algorithms that
// combine contributions out of order.
func requireSharedComm(c *Call) string {
	if problem := requireCommutative(c); problem != "" {
		return problem
	}
	return requireSharedOne(c)
}

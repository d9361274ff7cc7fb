package coll

// reduceShared is Reduce through shared buffers: the root combines the vectors of all ranks.
//
//	T = α + n·β + p·n·γ; with two ranks, α + n·(β + γ)
var reduceShared = &Algorithm{
	Name:        "shared",
	Source:      sharedSource,
	Shares:      true,
	unsupported: requireSharedOne,
	build: func(c *Call, s *Schedule) {
		s.addChunks(c, c.Bytes, 1, func(call *Call, schedule *Schedule, k chunk) {
			if call.Rank != call.Root {
				schedule.await(call.Root, k.number-1) // the root has read chunk number−2
			}
			input := call.inputLoc().offset(k.off)
			if call.Rank != call.Root || call.Rank < call.Ranks-2 { // combineAll reads the input of the last two itself
				schedule.copy(k.loc, input, k.n)
			}
			if call.Rank != call.Root {
				schedule.publish()
				return
			}
			schedule.await(AllRanks, k.number+1)
			schedule.combineAll(call.Rank, call.Ranks-1, k.loc, input, Loc{RecvBuf, k.off}, k.n)
			if k.isReused() {
				schedule.publish()
			}
		})
	},
	cost: allreduceShared.cost,
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

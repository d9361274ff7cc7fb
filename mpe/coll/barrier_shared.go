package coll

// barrierShared is Barrier through shared buffers: each rank publishes that it has arrived, and awaits all other ranks.
//
//	T = α
var barrierShared = &Algorithm{
	Name:        "shared",
	Source:      sharedSource,
	Shares:      true,
	unsupported: requireSharedOne,
	build: func(c *Call, s *Schedule) {
		s.InOrder = true
		s.publish()
		s.await(AllRanks, 1)
	},
	cost: func(*Call) Cost { return Cost{Rounds: 1} },
}

package coll

// bcastBinomial is Bcast down a binomial tree: each rank sends first to the child with the largest subtree, so that the
// number of ranks with the data doubles in each round.
//
//	T = ⌈log₂ p⌉·(α + nβ)
var bcastBinomial = &Algorithm{
	Name:   "binomial",
	Source: "Thakur, Rabenseifner, Gropp, Optimization of Collective Communication Operations in MPICH (2005), 3.2",
	build: func(call *Call, schedule *Schedule) {
		v, data, got := call.virtualRank(), Loc{Buf: RecvBuf}, 0
		if v != 0 {
			got = schedule.recv(call.actualRank(parent(v)), data, call.Bytes)
		}
		for d := firstChild(v, call.Ranks); d > 0; d /= 2 {
			schedule.send(call.actualRank(v+d), data, call.Bytes, got)
		}
	},
	cost: func(c *Call) Cost {
		return costOfRounds(log2(c.Ranks), c.Bytes, 0)
	},
}

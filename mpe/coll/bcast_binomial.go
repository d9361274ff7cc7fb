package coll

// bcastBinomial is Bcast down a binomial tree: each rank sends first to the child with the largest subtree, so that
// the number of ranks that have the data doubles in each round.
//
//	T = ⌈log₂ p⌉·(α + nβ)
var bcastBinomial = &Algorithm{
	Name:   "binomial",
	Source: "Thakur, Rabenseifner, Gropp, Optimization of Collective Communication Operations in MPICH (2005), 3.2",
	build: func(c *Call, s *Schedule) {
		v, data, got := c.virtualRank(), Loc{Buf: RecvBuf}, 0
		if v != 0 {
			got = s.recv(c.actualRank(parent(v)), data, c.Bytes)
		}
		for d := firstChild(v, c.Ranks); d > 0; d /= 2 {
			s.send(c.actualRank(v+d), data, c.Bytes, got)
		}
	},
	cost: func(c *Call) Cost {
		return costOfRounds(log2(c.Ranks), c.Bytes, 0)
	},
}

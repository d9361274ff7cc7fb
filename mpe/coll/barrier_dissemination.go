package coll

// barrierDissemination: in round k each rank notifies the one 2^k further on that it has
// arrived, and all ranks of which it knows. After log p rounds each rank knows of all.
//
//	T = ⌈log₂ p⌉·α, with p messages in each round
var barrierDissemination = &Algorithm{
	Name:   "dissemination",
	Source: "Hensgen, Finkel, Manber, Two Algorithms for Barrier Synchronization, Int. J. Parallel Programming 17 (1988)",
	build: func(c *Call, s *Schedule) {
		s.Window = 3
		known := 0
		for d := 1; d < c.Ranks; d *= 2 {
			s.sendToken((c.Rank+d)%c.Ranks, known)
			// The receives need not wait: they are posted before they are needed.
			known = s.join(known, s.recvToken((c.Rank-d+c.Ranks)%c.Ranks))
		}
	},
	cost: func(c *Call) Cost {
		return times(log2(c.Ranks), c.Token, 0)
	},
}

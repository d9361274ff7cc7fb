package coll

// alltoallShared: each rank copies its blocks to its shared buffer, and reads its own of all.
//
//	T = α + 2p·n·β, n bytes a block
var alltoallShared = &Algorithm{
	Name:   "shared",
	Source: sharedSource,
	Shares: true,
	fits:   sharesAll,
	build: func(c *Call, s *Schedule) {
		s.inChunks(c, c.Bytes, c.Ranks, func(c *Call, s *Schedule, k chunk) {
			s.pack(k.at, c.input().at(k.off), k.n, c.Ranks, c.Bytes)
			s.publish()
			for i := range c.Ranks {
				r := (c.Rank + i) % c.Ranks
				if i > 0 {
					s.await(r, k.number+1)
				}
				s.read(r, k.at.at(c.Rank*k.n), Loc{RecvBuf, r*c.Bytes + k.off}, k.n)
			}
		})
	},
	cost: func(c *Call) Cost { return Cost{Rounds: 1, Bytes: 2 * c.Ranks * c.Bytes} },
}

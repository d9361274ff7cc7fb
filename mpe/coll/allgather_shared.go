package coll

// allgatherShared is Allgather through shared buffers: each rank reads the blocks of all ranks.
//
//	T = α + (p + 1)·n·β, n bytes a block
var allgatherShared = &Algorithm{
	Name:        "shared",
	Source:      sharedSource,
	Shares:      true,
	unsupported: requireSharedOne,
	build: func(c *Call, s *Schedule) {
		s.addChunks(c, c.Bytes, 1, func(c *Call, s *Schedule, k chunk) {
			own, from := Loc{RecvBuf, c.Rank*c.Bytes + k.off}, Loc{SendBuf, k.off}
			if c.InPlace {
				from = own
			}
			s.copy(k.loc, from, k.n)
			s.publish()
			for i := range c.Ranks {
				r := (c.Rank + i) % c.Ranks
				switch {
				case i > 0:
					s.await(r, k.number+1)
					s.read(r, k.loc, Loc{RecvBuf, r*c.Bytes + k.off}, k.n)
				case !c.InPlace:
					s.copy(own, from, k.n)
				}
			}
		})
	},
	cost: func(c *Call) Cost { return Cost{Rounds: 1, Bytes: (c.Ranks + 1) * c.Bytes} },
}

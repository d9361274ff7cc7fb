package coll

// bcastFlat: the root sends to one rank after another, in the order of ranks. It is
// what upstream's compiler makes of MPI_Bcast, so it is what meets cloudfpga ranks.
//
//	T = (p−1)·(α + nβ)
var bcastFlat = &Algorithm{
	Name:   "flat",
	Source: "upstream's compiler, com_opt 0",
	build: func(c *Call, s *Schedule) {
		data := Loc{Buf: RecvBuf}
		if c.Rank != c.Root {
			s.recv(c.Root, data, c.Bytes)
			return
		}
		for r := range c.Ranks {
			if r != c.Root {
				s.send(r, data, c.Bytes)
			}
		}
	},
	cost: func(c *Call) Cost {
		return times(c.Ranks-1, c.Bytes, 0)
	},
}

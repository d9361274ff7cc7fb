package coll

// bcastFlat is Bcast in which the root sends to the other ranks in order. Upstream's compiler implements MPI_Bcast
// like this, so it is the counterpart of cloudfpga ranks.
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
		return costOfRounds(c.Ranks-1, c.Bytes, 0)
	},
}

package coll

// allgatherRing is Allgather in a ring: each rank passes every block on to the next rank.
//
//	T = (p−1)·(α + nβ), n bytes a block; if blocks differ in size, n is the size of
//	the largest, and T an upper bound
var allgatherRing = &Algorithm{
	Name:   "ring",
	Source: "Thakur, Rabenseifner, Gropp, Optimization of Collective Communication Operations in MPICH (2005), 3.1",
	build: func(c *Call, s *Schedule) {
		p := c.Ranks
		s.Window = 3
		left, right := (c.Rank-1+p)%p, (c.Rank+1)%p
		off, n := c.Block(&c.Recv, c.Rank)
		from := Loc{RecvBuf, off}
		if !c.InPlace {
			from = Loc{Buf: SendBuf}
			s.copy(Loc{RecvBuf, off}, from, n)
		}
		last := 0
		s.rounds(p-1, func(i int) {
			s.send(right, from, n, last)
			off, n = c.Block(&c.Recv, (c.Rank-i-1+p)%p)
			from = Loc{RecvBuf, off}
			last = s.recv(left, from, n)
		})
	},
	cost: func(c *Call) Cost {
		_, most := c.blockSizes(&c.Recv)
		return costOfRounds(c.Ranks-1, most, 0)
	},
}

package coll

// allgatherRing is Allgather in a ring: in each round, each rank forwards the block received last to the next rank.
//
//	T = (p−1)·(α + nβ), n bytes a block; if blocks differ in size, n is the size of
//	the largest, and T an upper bound
var allgatherRing = &Algorithm{
	Name:   "ring",
	Source: "Thakur, Rabenseifner, Gropp, Optimization of Collective Communication Operations in MPICH (2005), 3.1",
	build: func(call *Call, schedule *Schedule) {
		p := call.Ranks
		schedule.Window = 3
		left, right := (call.Rank-1+p)%p, (call.Rank+1)%p
		off, n := call.Block(&call.Recv, call.Rank)
		from := Loc{RecvBuf, off}
		if !call.InPlace {
			from = Loc{Buf: SendBuf}
			schedule.copy(Loc{RecvBuf, off}, from, n)
		}
		last := 0
		schedule.rounds(p-1, func(i int) {
			schedule.send(right, from, n, last)
			off, n = call.Block(&call.Recv, (call.Rank-i-1+p)%p)
			from = Loc{RecvBuf, off}
			last = schedule.recv(left, from, n)
		})
	},
	cost: func(c *Call) Cost {
		_, most := c.blockSizes(&c.Recv)
		return costOfRounds(c.Ranks-1, most, 0)
	},
}

package coll

// exchangedAtOnce is how many bytes of blocks a rank sends and receives at a time, or one block if
// that is longer.
const exchangedAtOnce = 1 << 20

// alltoallPairwise: in round i each rank sends to the one i further on and receives
// from the one i before. Rounds of short blocks do not depend on each other: how many of them
// are under way at a time is the executor's affair. A long block waits for the one some rounds
// before, so that blocks are still in the cache when they are received. One round at a time
// would have all ranks wait for the one that calls last.
//
//	T = (p−1)·(α + nβ), n bytes a block; with blocks of different sizes there is no
//	formula that one rank could compute
var alltoallPairwise = &Algorithm{
	Name:   "pairwise",
	Source: "Thakur, Rabenseifner, Gropp, Optimization of Collective Communication Operations in MPICH (2005), 3.3",
	build: func(c *Call, s *Schedule) {
		p, r := c.Ranks, c.Rank
		s.Window = 3
		buf, layout := Loc{Buf: SendBuf}, &c.Send
		ready := 0
		if c.InPlace { // everything is sent from a copy, as it is overwritten
			layout = &c.Recv
			end := 0
			for i := range p {
				off, n := c.Block(layout, i)
				end = max(end, off+n)
			}
			buf = s.reserve(end)
			ready = s.copy(buf, Loc{Buf: RecvBuf}, end)
		} else {
			from, n := c.Block(&c.Send, r)
			into, _ := c.Block(&c.Recv, r)
			s.copy(Loc{RecvBuf, into}, Loc{SendBuf, from}, n)
		}
		got := make([]int, p-1)
		s.rounds(p-1, func(i int) {
			to, of := (r+i+1)%p, (r-i-1+p)%p
			off, n := c.Block(layout, to)
			s.send(to, buf.at(off), n, ready, earlier(got[:i], n))
			off, n = c.Block(&c.Recv, of)
			got[i] = s.recv(of, Loc{RecvBuf, off}, n, ready, earlier(got[:i], n))
		})
	},
	cost: func(c *Call) Cost {
		return times(c.Ranks-1, c.Bytes, 0)
	},
}

// earlier returns which of the blocks that are received before one of n bytes it waits for, or 0.
func earlier(got []int, n int) int {
	if back := max(1, exchangedAtOnce/max(n, 1)); back <= len(got) {
		return got[len(got)-back]
	}
	return 0
}

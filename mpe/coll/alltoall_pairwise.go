package coll

// exchangedAlone is how long a block is, at least, that is exchanged before the next one.
const exchangedAlone = 64 << 10

// alltoallPairwise: in round i each rank sends to the one i further on and receives
// from the one i before. Rounds of short blocks do not depend on each other: how many of them
// are under way at a time is the executor's affair. Long blocks go one round after the other,
// so that they are still in the cache when they are received.
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
				off, n := c.block(layout, i)
				end = max(end, off+n)
			}
			buf = s.reserve(end)
			ready = s.copy(buf, Loc{Buf: RecvBuf}, end)
		} else {
			from, n := c.block(&c.Send, r)
			into, _ := c.block(&c.Recv, r)
			s.copy(Loc{RecvBuf, into}, Loc{SendBuf, from}, n)
		}
		got := 0
		s.rounds(p-1, func(i int) {
			to, of := (r+i+1)%p, (r-i-1+p)%p
			off, n := c.block(layout, to)
			s.send(to, buf.at(off), n, ready, got)
			off, n = c.block(&c.Recv, of)
			before := got
			got = s.recv(of, Loc{RecvBuf, off}, n, ready, before)
			if n < exchangedAlone {
				got = 0
			}
		})
	},
	cost: func(c *Call) Cost {
		return times(c.Ranks-1, c.Bytes, 0)
	},
}

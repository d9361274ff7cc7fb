package coll

// allgatherBruck is Bruck's Allgather: in round k, each rank receives up to 2^k blocks, of the ranks after those whose
// blocks it already holds. It stores blocks in the order of arrival, and moves them to their final locations at the
// end.
//
//	T = ⌈log₂ p⌉·α + (p−1)·nβ, n bytes a block
var allgatherBruck = &Algorithm{
	Name: "bruck",
	Source: "Bruck, Ho, Kipnis, Upfal, Weathersby, Efficient Algorithms for All-to-All Communications in Multiport " +
		"Message-Passing Systems (1997)",
	unsupported: requireUniform,
	build: func(c *Call, schedule *Schedule) {
		p, n, r := c.Ranks, c.Bytes, c.Rank
		schedule.Window = 4
		tmp := schedule.reserve(p * n)
		own, first := Loc{Buf: SendBuf}, 0
		if c.InPlace {
			own, first = Loc{RecvBuf, r * n}, 1 // excluded, because it is already in its final location
		}
		ready := schedule.copy(tmp, own, n)
		for have := 1; have < p; have *= 2 {
			size := min(have, p-have) * n
			schedule.send((r-have+p)%p, tmp, size, ready)
			ready = schedule.join(ready, schedule.recv((r+have)%p, tmp.offset(have*n), size))
		}
		schedule.copy(Loc{RecvBuf, (r + first) * n}, tmp.offset(first*n), (p-r-first)*n, ready)
		schedule.copy(Loc{Buf: RecvBuf}, tmp.offset((p-r)*n), r*n, ready)
	},
	cost: func(c *Call) Cost {
		return Cost{Rounds: log2(c.Ranks), Bytes: (c.Ranks - 1) * c.Bytes}
	},
}

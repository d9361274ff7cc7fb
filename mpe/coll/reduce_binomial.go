package coll

// reduceBinomial is Reduce up a binomial tree. If the order of operands matters, the tree's root is rank 0, because
// only then is every subtree a range of ranks; rank 0 then sends the result to the call's root.
//
//	T = ⌈log₂ p⌉·(α + nβ + nγ), and α + nβ more if the order matters and the root
//	is not 0
var reduceBinomial = &Algorithm{
	Name:   "binomial",
	Source: "Thakur, Rabenseifner, Gropp, Optimization of Collective Communication Operations in MPICH (2005), 3.5",
	build: func(c *Call, s *Schedule) {
		top := c.Root
		if c.Ordered {
			top = 0
		}
		n, p, v := c.Bytes, c.Ranks, (c.Rank-top+c.Ranks)%c.Ranks
		actual := func(v int) int { return (v + top) % p }
		own, ready := Loc{Buf: SendBuf}, 0
		var acc, tmp Loc
		if firstChild(v, p) > 0 {
			tmp = s.reserve(n)
			acc = s.reserve(n)
		}
		if c.Rank == c.Root {
			acc, own = Loc{Buf: RecvBuf}, c.inputLoc()
		}
		have := own // location of the rank's partial result
		free := 0
		for d := 1; d < subtree(v, p); d *= 2 {
			peer := actual(v + d)
			if have != acc { // receive the first message at the place of the result
				ready = s.reduce(acc, own, n, s.recv(peer, acc, n))
				have = acc
				continue
			}
			got := s.recv(peer, tmp, n, free)
			ready = s.combine(false, acc, tmp, n, got, ready)
			free = ready
		}
		if v != 0 {
			ready = s.send(actual(parent(v)), have, n, ready)
		}
		if top == c.Root {
			return
		}
		if v == 0 {
			s.send(c.Root, have, n, ready)
		} else if c.Rank == c.Root {
			s.recv(0, acc, n, ready)
		}
	},
	cost: func(c *Call) Cost {
		cost := costOfRounds(log2(c.Ranks), c.Bytes, c.Bytes)
		if c.Ordered && c.Root != 0 {
			cost.Rounds++
			cost.Bytes += c.Bytes
		}
		return cost
	},
}

package coll

// scanDoubling and exscanDoubling use recursive doubling: in round k, each rank sends its partial result, which
// combines the contributions of the last 2^k ranks up to itself, to the rank at distance 2^k after it.
//
//	T = ⌈log₂ p⌉·(α + nβ + nγ); Exscan combines the result and the value that it sends
//	separately, so up to twice the nγ
var scanDoubling = &Algorithm{
	Name:   "doubling",
	Source: "Hillis, Steele, Data Parallel Algorithms (1986)",
	build: func(c *Call, s *Schedule) {
		n, acc := c.Bytes, Loc{Buf: RecvBuf}
		s.Window = 3
		tmp := [2]Loc{s.reserve(n), s.reserve(n)}
		var free [2]int
		ready := copyInput(c, s, acc, n)
		for k, d := 0, 1; d < c.Ranks; k, d = k+1, 2*d {
			t, sent := k%2, 0
			if c.Rank+d < c.Ranks {
				sent = s.send(c.Rank+d, acc, n, ready)
			}
			if c.Rank >= d {
				got := s.recv(c.Rank-d, tmp[t], n, free[t])
				ready = s.reduce(acc, tmp[t], n, ready, sent, got)
				free[t] = ready
			}
		}
	},
	cost: func(c *Call) Cost {
		return costOfRounds(log2(c.Ranks), c.Bytes, c.Bytes)
	},
}

var exscanDoubling = &Algorithm{
	Name:   "doubling",
	Source: "Hillis, Steele, Data Parallel Algorithms (1986)",
	build: func(c *Call, s *Schedule) {
		n, result := c.Bytes, Loc{Buf: RecvBuf}
		s.Window = 4
		part := s.reserve(n)
		tmp := [2]Loc{s.reserve(n), s.reserve(n)}
		var free [2]int
		ready := 0
		if c.Rank < c.Ranks-1 { // no rank uses the last rank's contribution
			ready = s.copy(part, c.inputLoc(), n)
		}
		whole := ready // the contribution may be at the place of the result
		for k, d := 0, 1; d < c.Ranks; k, d = k+1, 2*d {
			t, sent := k%2, 0
			if c.Rank+d < c.Ranks {
				sent = s.send(c.Rank+d, part, n, ready)
			}
			if c.Rank < d {
				continue
			}
			from, got := result, 0
			if k == 0 {
				got = s.recv(c.Rank-d, result, n, whole)
				whole = got
			} else {
				from = tmp[t]
				got = s.recv(c.Rank-d, from, n, free[t])
			}
			if c.Rank+2*d < c.Ranks { // part is sent once more
				ready = s.reduce(part, from, n, ready, sent, got)
			}
			if k > 0 {
				whole = s.reduce(result, from, n, whole, got, ready)
				free[t] = whole
			} else {
				whole = s.join(got, ready)
			}
		}
	},
	cost: func(c *Call) Cost {
		cost := costOfRounds(log2(c.Ranks), c.Bytes, 2*c.Bytes)
		cost.Reduced -= c.Bytes
		return cost
	},
}

package coll

// reduceScatterPairwise is a reduce-scatter in p−1 rounds: in round i, each rank sends its contribution to the
// block of the rank at distance i after it, and receives a contribution to its own block from the rank at distance
// i before it. If the order of operands matters, all contributions are kept until they can be combined in the order
// of ranks.
//
//	T = (p−1)·(α + nβ + nγ), n bytes a block; if blocks differ in size, n is the size of
//	the largest, and T an upper bound
var reduceScatterPairwise = &Algorithm{
	Name:   "pairwise",
	Source: "Thakur, Rabenseifner, Gropp, Optimization of Collective Communication Operations in MPICH (2005), 3.4",
	build: func(c *Call, s *Schedule) {
		p, r := c.Ranks, c.Rank
		own, acc := c.inputLoc(), Loc{Buf: RecvBuf}
		off, n := c.Block(&c.Recv, r)
		if c.InPlace { // blocks still to be sent occupy the place of the result
			acc = s.reserve(n)
		}
		s.Window = 4
		if c.Ordered {
			reduceScatterInOrder(c, s, own, acc)
			return
		}
		tmp := [2]Loc{s.reserve(n), s.reserve(n)}
		var free [2]int
		ready := s.copy(acc, own.offset(off), n)
		s.rounds(p-1, func(i int) {
			to, of, t := (r+i+1)%p, (r-i-1+p)%p, i%2
			there, size := c.Block(&c.Recv, to)
			s.send(to, own.offset(there), size)
			got := s.recv(of, tmp[t], n, free[t])
			ready = s.reduce(acc, tmp[t], n, got, ready)
			free[t] = ready
		})
		copyResult(c, s, acc, n)
	},
	cost: func(c *Call) Cost {
		_, most := c.blockSizes(&c.Recv)
		return costOfRounds(c.Ranks-1, most, most)
	},
}

// reduceScatterInOrder stores the contributions separately, and combines them from the last rank to the first, so
// that the next operand always comes from a lower rank.
func reduceScatterInOrder(c *Call, s *Schedule, own, acc Loc) {
	p, r := c.Ranks, c.Rank
	off, n := c.Block(&c.Recv, r)
	kept := s.reserve((p - 1) * n)
	place := func(rank int) Loc {
		if rank == p-1 {
			return acc
		}
		return kept.offset(rank * n)
	}
	s.copy(place(r), own.offset(off), n)
	s.rounds(p-1, func(i int) {
		to, of := (r+i+1)%p, (r-i-1+p)%p
		there, size := c.Block(&c.Recv, to)
		s.send(to, own.offset(there), size)
		s.recv(of, place(of), n)
	})
	ready := 0
	s.rounds(p-1, func(i int) {
		if i == 0 {
			ready = s.fence()
		}
		ready = s.reduce(acc, place(p-2-i), n, ready)
	})
	copyResult(c, s, acc, n)
}

// copyResult copies the result to the place of the contribution, once the contribution is no longer needed.
func copyResult(c *Call, s *Schedule, acc Loc, n int) {
	if c.InPlace {
		s.rounds(1, func(int) { s.copy(Loc{Buf: RecvBuf}, acc, n, AllEarlier) })
	}
}

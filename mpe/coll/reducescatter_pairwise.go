package coll

// reduceScatterPairwise: in round i each rank sends to the one i further on the block
// that is that one's, and receives its own from the one i before. Where the order
// matters, all that comes is kept until it can be combined in the order of ranks.
//
//	T = (p−1)·(α + nβ + nγ), n bytes a block; with blocks of different sizes a bound,
//	with n the greatest of them
var reduceScatterPairwise = &Algorithm{
	Name:   "pairwise",
	Source: "Thakur, Rabenseifner, Gropp, Optimization of Collective Communication Operations in MPICH (2005), 3.4",
	build: func(c *Call, s *Schedule) {
		p, r := c.Ranks, c.Rank
		own, acc := c.input(), Loc{Buf: RecvBuf}
		off, n := c.Block(&c.Recv, r)
		if c.InPlace { // blocks that are still to be sent lie where the result goes
			acc = s.reserve(n)
		}
		s.Window = 4
		if c.Ordered {
			reduceScatterInOrder(c, s, own, acc)
			return
		}
		tmp := [2]Loc{s.reserve(n), s.reserve(n)}
		var free [2]int
		ready := s.copy(acc, own.at(off), n)
		s.rounds(p-1, func(i int) {
			to, of, t := (r+i+1)%p, (r-i-1+p)%p, i%2
			there, size := c.Block(&c.Recv, to)
			s.send(to, own.at(there), size)
			got := s.recv(of, tmp[t], n, free[t])
			ready = s.reduce(acc, tmp[t], n, got, ready)
			free[t] = ready
		})
		backInPlace(c, s, acc, n)
	},
	cost: func(c *Call) Cost {
		_, most := c.vector(&c.Recv)
		return times(c.Ranks-1, most, most)
	},
}

// reduceScatterInOrder keeps what comes apart, and combines from the last rank to the
// first, so that what is combined with is always of lower ranks.
func reduceScatterInOrder(c *Call, s *Schedule, own, acc Loc) {
	p, r := c.Ranks, c.Rank
	off, n := c.Block(&c.Recv, r)
	kept := s.reserve((p - 1) * n)
	place := func(rank int) Loc {
		if rank == p-1 {
			return acc
		}
		return kept.at(rank * n)
	}
	s.copy(place(r), own.at(off), n)
	s.rounds(p-1, func(i int) {
		to, of := (r+i+1)%p, (r-i-1+p)%p
		there, size := c.Block(&c.Recv, to)
		s.send(to, own.at(there), size)
		s.recv(of, place(of), n)
	})
	ready := 0
	s.rounds(p-1, func(i int) {
		if i == 0 {
			ready = s.fence()
		}
		ready = s.reduce(acc, place(p-2-i), n, ready)
	})
	backInPlace(c, s, acc, n)
}

// backInPlace puts the result where the contribution was, when that is not needed any
// more.
func backInPlace(c *Call, s *Schedule, acc Loc, n int) {
	if c.InPlace {
		s.rounds(1, func(int) { s.copy(Loc{Buf: RecvBuf}, acc, n, Everything) })
	}
}

package coll

// reduceFlat is Reduce in which the root receives the contributions of the other ranks in order, and combines them,
// with its own contribution at its own place in the order. Upstream's compiler implements MPI_Reduce like this, so
// it is the counterpart of cloudfpga ranks.
//
//	T = (p−1)·(α + nβ + nγ)
var reduceFlat = &Algorithm{
	Name:   "flat",
	Source: "upstream's compiler, com_opt 0",
	build: func(c *Call, s *Schedule) {
		n, acc := c.Bytes, Loc{Buf: RecvBuf}
		if c.Rank != c.Root {
			s.send(c.Root, Loc{Buf: SendBuf}, n)
			return
		}
		own, kept := c.inputLoc(), 0
		if c.InPlace && c.Root != 0 { // the first message overwrites the root's contribution
			own = s.reserve(n)
			kept = s.copy(own, acc, n)
		}
		tmp := [2]Loc{s.reserve(n), s.reserve(n)}
		var free [2]int
		ready := 0
		for r := range c.Ranks {
			t := r % 2
			switch {
			case r == c.Root && own == acc: // root 0, in place
			case r == c.Root && r == 0:
				ready = s.copy(acc, own, n)
			case r == c.Root && own.Buf == Scratch:
				ready = s.combine(false, acc, own, n, ready, kept)
			case r == c.Root: // the send buffer must not be changed
				copied := s.copy(tmp[t], own, n, free[t])
				ready = s.combine(false, acc, tmp[t], n, ready, copied)
				free[t] = ready
			case r == 0:
				ready = s.recv(r, acc, n, kept)
			default:
				got := s.recv(r, tmp[t], n, free[t])
				ready = s.combine(false, acc, tmp[t], n, ready, got)
				free[t] = ready
			}
		}
	},
	cost: func(c *Call) Cost {
		return costOfRounds(c.Ranks-1, c.Bytes, c.Bytes)
	},
}

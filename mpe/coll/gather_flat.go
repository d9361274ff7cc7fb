package coll

// gatherFlat and scatterFlat let the root receive from, or send to, the other ranks in order. Upstream's compiler
// implements MPI_Gather and MPI_Scatter like this, so they are the counterpart of cloudfpga ranks. Only these
// algorithms work if no rank but the root knows the sizes of all blocks.
//
//	T = (p−1)·(α + nβ), n bytes a block
var gatherFlat = &Algorithm{
	Name:   "flat",
	Source: "upstream's compiler, com_opt 0",
	build: func(c *Call, s *Schedule) {
		if c.Rank != c.Root {
			s.send(c.Root, Loc{Buf: SendBuf}, c.Bytes)
			return
		}
		for r := range c.Ranks {
			off, n := c.Block(&c.Recv, r)
			switch {
			case r != c.Root:
				s.recv(r, Loc{RecvBuf, off}, n)
			case !c.InPlace:
				s.copy(Loc{RecvBuf, off}, Loc{Buf: SendBuf}, n)
			}
		}
	},
	cost: func(c *Call) Cost { return c.rootCost(&c.Recv) },
}

var scatterFlat = &Algorithm{
	Name:   "flat",
	Source: "upstream's compiler, com_opt 0",
	build: func(c *Call, s *Schedule) {
		if c.Rank != c.Root {
			s.recv(c.Root, Loc{Buf: RecvBuf}, c.Bytes)
			return
		}
		for r := range c.Ranks {
			off, n := c.Block(&c.Send, r)
			switch {
			case r != c.Root:
				s.send(r, Loc{SendBuf, off}, n)
			case !c.InPlace:
				s.copy(Loc{Buf: RecvBuf}, Loc{SendBuf, off}, n)
			}
		}
	},
	cost: func(c *Call) Cost { return c.rootCost(&c.Send) },
}

// rootCost returns the cost of a message between the root and each other rank with a non-empty block.
func (c *Call) rootCost(l *Layout) Cost {
	var cost Cost
	for r := range c.Ranks {
		if _, n := c.Block(l, r); r != c.Root && n > 0 {
			cost.Rounds++
			cost.Bytes += n
		}
	}
	return cost
}

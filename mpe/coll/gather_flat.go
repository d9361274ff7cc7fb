package coll

// gatherFlat and scatterFlat are Gather and Scatter in which the root receives from, or sends to, the other ranks in
// order. They are compatible with cloudfpga ranks, for which upstream's compiler implements MPI_Gather and MPI_Scatter
// like this. No other algorithm works if only the root knows the sizes of all blocks.
//
//	T = (p−1)·(α + nβ), n bytes a block
var gatherFlat = &Algorithm{
	Name:   "flat",
	Source: "upstream's compiler, com_opt 0",
	build: func(call *Call, schedule *Schedule) {
		if call.Rank != call.Root {
			schedule.send(call.Root, Loc{Buf: SendBuf}, call.Bytes)
			return
		}
		for r := range call.Ranks {
			off, n := call.Block(&call.Recv, r)
			switch {
			case r != call.Root:
				schedule.recv(r, Loc{RecvBuf, off}, n)
			case !call.InPlace:
				schedule.copy(Loc{RecvBuf, off}, Loc{Buf: SendBuf}, n)
			}
		}
	},
	cost: func(c *Call) Cost { return c.rootCost(&c.Recv) },
}

var scatterFlat = &Algorithm{
	Name:   "flat",
	Source: "upstream's compiler, com_opt 0",
	build: func(call *Call, schedule *Schedule) {
		if call.Rank != call.Root {
			schedule.recv(call.Root, Loc{Buf: RecvBuf}, call.Bytes)
			return
		}
		for r := range call.Ranks {
			off, n := call.Block(&call.Send, r)
			switch {
			case r != call.Root:
				schedule.send(r, Loc{SendBuf, off}, n)
			case !call.InPlace:
				schedule.copy(Loc{Buf: RecvBuf}, Loc{SendBuf, off}, n)
			}
		}
	},
	cost: func(c *Call) Cost { return c.rootCost(&c.Send) },
}

// rootCost returns the cost if the root exchanges one message after another, one with each other rank whose block is
// not empty.
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

package coll

// gatherShared and scatterShared use shared buffers: the root reads the blocks of all ranks, or all ranks read their
// blocks from the root's buffer.
//
//	T = α + (p + 1)·n·β, n bytes a block
var gatherShared = &Algorithm{
	Name:        "shared",
	Source:      sharedSource,
	Shares:      true,
	unsupported: requireSharedOne,
	build: func(c *Call, s *Schedule) {
		s.addChunks(c, c.Bytes, 1, func(c *Call, s *Schedule, k chunk) {
			if c.Rank != c.Root {
				s.await(c.Root, k.number-1) // the root has read chunk number−2
				s.copy(k.loc, Loc{SendBuf, k.off}, k.n)
				s.publish()
				return
			}
			for i := range c.Ranks {
				r := (c.Root + i) % c.Ranks
				into := Loc{RecvBuf, r*c.Bytes + k.off}
				switch {
				case i > 0:
					s.await(r, k.number+1)
					s.read(r, k.loc, into, k.n)
				case !c.InPlace:
					s.copy(into, Loc{SendBuf, k.off}, k.n)
				}
			}
			if k.isReused() {
				s.publish()
			}
		})
	},
	cost: func(c *Call) Cost { return Cost{Rounds: 1, Bytes: (c.Ranks + 1) * c.Bytes} },
}

var scatterShared = &Algorithm{
	Name:        "shared",
	Source:      sharedSource,
	Shares:      true,
	unsupported: requireSharedAll,
	build: func(c *Call, s *Schedule) {
		s.addChunks(c, c.Bytes, c.Ranks, func(c *Call, s *Schedule, k chunk) {
			if c.Rank == c.Root {
				s.await(AllRanks, k.number-1)
				s.pack(k.loc, Loc{SendBuf, k.off}, k.n, c.Ranks, c.Bytes)
				s.publish()
				if !c.InPlace {
					s.copy(Loc{RecvBuf, k.off}, Loc{SendBuf, c.Rank*c.Bytes + k.off}, k.n)
				}
				return
			}
			s.await(c.Root, k.number+1)
			s.read(c.Root, k.loc.offset(c.Rank*k.n), Loc{RecvBuf, k.off}, k.n)
			if k.isReused() {
				s.publish()
			}
		})
	},
	cost: func(c *Call) Cost { return Cost{Rounds: 1, Bytes: (c.Ranks + 1) * c.Bytes} },
}

package coll

// gatherShared and scatterShared are Gather and Scatter through shared buffers: the root reads the blocks of all ranks,
// or all ranks read their blocks from the root's buffer.
//
//	T = α + (p + 1)·n·β, n bytes a block
var gatherShared = &Algorithm{
	Name:        "shared",
	Source:      sharedSource,
	Shares:      true,
	unsupported: requireSharedOne,
	build: func(c *Call, s *Schedule) {
		s.addChunks(c, c.Bytes, 1, func(call *Call, schedule *Schedule, k chunk) {
			if call.Rank != call.Root {
				schedule.await(call.Root, k.number-1) // the root has read chunk number−2
				schedule.copy(k.loc, Loc{SendBuf, k.off}, k.n)
				schedule.publish()
				return
			}
			for i := range call.Ranks {
				r := (call.Root + i) % call.Ranks
				into := Loc{RecvBuf, r*call.Bytes + k.off}
				switch {
				case i > 0:
					schedule.await(r, k.number+1)
					schedule.read(r, k.loc, into, k.n)
				case !call.InPlace:
					schedule.copy(into, Loc{SendBuf, k.off}, k.n)
				}
			}
			if k.isReused() {
				schedule.publish()
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
		s.addChunks(c, c.Bytes, c.Ranks, func(call *Call, schedule *Schedule, k chunk) {
			if call.Rank == call.Root {
				schedule.await(AllRanks, k.number-1)
				schedule.pack(k.loc, Loc{SendBuf, k.off}, k.n, call.Ranks, call.Bytes)
				schedule.publish()
				if !call.InPlace {
					schedule.copy(Loc{RecvBuf, k.off}, Loc{SendBuf, call.Rank*call.Bytes + k.off}, k.n)
				}
				return
			}
			schedule.await(call.Root, k.number+1)
			schedule.read(call.Root, k.loc.offset(call.Rank*k.n), Loc{RecvBuf, k.off}, k.n)
			if k.isReused() {
				schedule.publish()
			}
		})
	},
	cost: func(c *Call) Cost { return Cost{Rounds: 1, Bytes: (c.Ranks + 1) * c.Bytes} },
}

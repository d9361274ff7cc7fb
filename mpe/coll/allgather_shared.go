package coll

// allgatherShared is Allgather through shared buffers: each rank reads the blocks of all ranks.
//
//	T = α + (p + 1)·n·β, n bytes a block
var allgatherShared = &Algorithm{
	Name:        "shared",
	Source:      sharedSource,
	Shares:      true,
	unsupported: requireSharedOne,
	build: func(c *Call, s *Schedule) {
		s.addChunks(c, c.Bytes, 1, func(call *Call, schedule *Schedule, k chunk) {
			own, from := Loc{RecvBuf, call.Rank*call.Bytes + k.off}, Loc{SendBuf, k.off}
			if call.InPlace {
				from = own
			}
			schedule.copy(k.loc, from, k.n)
			schedule.publish()
			for i := range call.Ranks {
				r := (call.Rank + i) % call.Ranks
				switch {
				case i > 0:
					schedule.await(r, k.number+1)
					schedule.read(r, k.loc, Loc{RecvBuf, r*call.Bytes + k.off}, k.n)
				case !call.InPlace:
					schedule.copy(own, from, k.n)
				}
			}
		})
	},
	cost: func(c *Call) Cost { return Cost{Rounds: 1, Bytes: (c.Ranks + 1) * c.Bytes} },
}

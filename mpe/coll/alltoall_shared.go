package coll

// alltoallShared is Alltoall through shared buffers: each rank copies its blocks to its shared buffer, and reads its
// incoming blocks from the buffers of the other ranks.
//
//	T = α + (2p − 1)·n·β, n bytes a block
var alltoallShared = &Algorithm{
	Name:        "shared",
	Source:      sharedSource,
	Shares:      true,
	unsupported: requireSharedAll,
	build: func(c *Call, s *Schedule) {
		s.addChunks(c, c.Bytes, c.Ranks, func(call *Call, schedule *Schedule, k chunk) {
			behind := call.Rank + 1
			schedule.pack(k.loc, call.inputLoc().offset(k.off), k.n, call.Rank, call.Bytes)
			schedule.pack(k.loc.offset(behind*k.n), call.inputLoc().offset(behind*call.Bytes+k.off), k.n, call.Ranks-behind,
				call.Bytes)
			schedule.publish()
			if own := call.Rank*call.Bytes + k.off; !call.InPlace {
				schedule.copy(Loc{RecvBuf, own}, call.inputLoc().offset(own), k.n)
			}
			for i := 1; i < call.Ranks; i++ {
				r := (call.Rank + i) % call.Ranks
				schedule.await(r, k.number+1)
				schedule.read(r, k.loc.offset(call.Rank*k.n), Loc{RecvBuf, r*call.Bytes + k.off}, k.n)
			}
		})
	},
	cost: func(c *Call) Cost { return Cost{Rounds: 1, Bytes: (2*c.Ranks - 1) * c.Bytes} },
}

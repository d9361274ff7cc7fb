package coll

// scanShared and exscanShared are Scan and Exscan through shared buffers: each rank combines the vectors of the ranks
// before it and, in Scan, its own.
//
//	T = α + n·β + p·n·γ
var scanShared = &Algorithm{
	Name:        "shared",
	Source:      sharedSource,
	Shares:      true,
	unsupported: requireSharedOne,
	build: func(c *Call, s *Schedule) {
		s.addChunks(c, c.Bytes, 1, func(c *Call, s *Schedule, k chunk) { c.combineBefore(s, k, c.Rank) })
	},
	cost: allreduceShared.cost,
}

var exscanShared = &Algorithm{
	Name:        "shared",
	Source:      sharedSource,
	Shares:      true,
	unsupported: requireSharedOne,
	build: func(c *Call, s *Schedule) {
		s.addChunks(c, c.Bytes, 1, func(c *Call, s *Schedule, k chunk) { c.combineBefore(s, k, c.Rank-1) })
	},
	cost: allreduceShared.cost,
}

// combineBefore publishes the caller's contribution, and combines the contributions of ranks 0 to last, if any.
func (c *Call) combineBefore(schedule *Schedule, k chunk, last int) {
	if c.Rank < c.Ranks-1 { // no rank reads the last rank's vector
		schedule.copy(k.loc, c.inputLoc().offset(k.off), k.n)
	}
	schedule.publish()
	schedule.await(AllRanks, k.number+1)
	if last >= 0 {
		schedule.combineAll(c.Rank, last, k.loc, c.inputLoc().offset(k.off), Loc{RecvBuf, k.off}, k.n)
	}
}

package coll

// bcastFlat is Bcast in which the root sends to the other ranks in order. It is compatible with cloudfpga ranks, for
// which upstream's compiler implements MPI_Bcast like this.
//
//	T = (p−1)·(α + nβ)
var bcastFlat = &Algorithm{
	Name:   "flat",
	Source: "upstream's compiler, com_opt 0",
	build: func(call *Call, schedule *Schedule) {
		data := Loc{Buf: RecvBuf}
		if call.Rank != call.Root {
			schedule.recv(call.Root, data, call.Bytes)
			return
		}
		for r := range call.Ranks {
			if r != call.Root {
				schedule.send(r, data, call.Bytes)
			}
		}
	},
	cost: func(c *Call) Cost {
		return costOfRounds(c.Ranks-1, c.Bytes, 0)
	},
}

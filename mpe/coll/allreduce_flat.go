package coll

// allreduceFlat is Allreduce by rank 0, which receives the contributions of the other ranks, combines them in rank
// order, and sends the result to each rank. No two ranks ever send to each other at the same time. That would be slow
// with deployed nodes: such a node forgets the other rank's request, which is retransmitted only after 100 ms.
//
//	T = (p−1)·(2α + 2nβ + nγ)
var allreduceFlat = &Algorithm{
	Name:   "flat",
	Source: "upstream's Reduce and Bcast, com_opt 0, one after the other",
	build: func(call *Call, schedule *Schedule) {
		n, acc := call.Bytes, Loc{Buf: RecvBuf}
		if call.Rank != 0 {
			schedule.recv(0, acc, n, schedule.send(0, call.inputLoc(), n))
			return
		}
		ready := copyInput(call, schedule, acc, n)
		tmp := [2]Loc{schedule.reserve(n), schedule.reserve(n)}
		var free [2]int
		for r := 1; r < call.Ranks; r++ {
			t := r % 2
			ready = schedule.combine(false, acc, tmp[t], n, ready, schedule.recv(r, tmp[t], n, free[t]))
			free[t] = ready
		}
		for r := 1; r < call.Ranks; r++ {
			schedule.send(r, acc, n, ready)
		}
	},
	cost: func(c *Call) Cost {
		rounds := 2 * (c.Ranks - 1)
		return Cost{Rounds: rounds, Bytes: rounds * c.Bytes, Reduced: rounds / 2 * c.Bytes}
	},
}

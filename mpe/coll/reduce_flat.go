package coll

// reduceFlat is Reduce in which the root receives the contributions of the other ranks in order, and combines all
// contributions, including its own, in rank order. It is compatible with cloudfpga ranks, for which upstream's compiler
// implements MPI_Reduce like this.
//
//	T = (p−1)·(α + nβ + nγ)
var reduceFlat = &Algorithm{
	Name:   "flat",
	Source: "upstream's compiler, com_opt 0",
	build: func(call *Call, schedule *Schedule) {
		n, acc := call.Bytes, Loc{Buf: RecvBuf}
		if call.Rank != call.Root {
			schedule.send(call.Root, Loc{Buf: SendBuf}, n)
			return
		}
		own, kept := call.inputLoc(), 0
		if call.InPlace && call.Root != 0 { // the first message overwrites the root's contribution
			own = schedule.reserve(n)
			kept = schedule.copy(own, acc, n)
		}
		tmp := [2]Loc{schedule.reserve(n), schedule.reserve(n)}
		var free [2]int
		ready := 0
		for r := range call.Ranks {
			t := r % 2
			switch {
			case r == call.Root && own == acc: // root 0, in place
			case r == call.Root && r == 0:
				ready = schedule.copy(acc, own, n)
			case r == call.Root && own.Buf == Scratch:
				ready = schedule.combine(false, acc, own, n, ready, kept)
			case r == call.Root: // the send buffer must not be changed
				copied := schedule.copy(tmp[t], own, n, free[t])
				ready = schedule.combine(false, acc, tmp[t], n, ready, copied)
				free[t] = ready
			case r == 0:
				ready = schedule.recv(r, acc, n, kept)
			default:
				got := schedule.recv(r, tmp[t], n, free[t])
				ready = schedule.combine(false, acc, tmp[t], n, ready, got)
				free[t] = ready
			}
		}
	},
	cost: func(c *Call) Cost {
		return costOfRounds(c.Ranks-1, c.Bytes, c.Bytes)
	},
}

package coll

// allreduceDoubling is Allreduce by recursive doubling: in round k, ranks whose numbers differ in bit k exchange their
// partial results and combine them. With g the greatest power of two ≤ p:
//
//	T = log₂ g·(α + nβ + nγ), and 2α + 2nβ + nγ more if g < p
var allreduceDoubling = &Algorithm{
	Name:   "recursive-doubling",
	Source: "Thakur, Rabenseifner, Gropp, Optimization of Collective Communication Operations in MPICH (2005), 3.6",
	build: func(call *Call, schedule *Schedule) {
		n, f := call.Bytes, newFold(call.Ranks, -1)
		acc := Loc{Buf: RecvBuf}
		schedule.Window = 3
		// With two receive buffers, each receive can be posted before its message arrives.
		tmp := [2]Loc{schedule.reserve(n), schedule.reserve(n)}
		_, ready := f.foldIn(call, schedule, acc, acc, tmp[1], n, copyInput(call, schedule, acc, n))
		if me, on := f.groupNumber(call.Rank); on {
			free := [2]int{0, ready}
			for k, mask := 0, 1; mask < f.group; k, mask = k+1, mask<<1 {
				peer, t := f.actualRank(me^mask), k%2
				sent := schedule.send(peer, acc, n, ready)
				got := schedule.recv(peer, tmp[t], n, free[t])
				ready = schedule.combine(me&mask != 0, acc, tmp[t], n, ready, sent, got)
				free[t] = ready
			}
		}
		f.foldOut(call, schedule, acc, n, ready)
	},
	cost: func(c *Call) Cost {
		f, n := newFold(c.Ranks, -1), c.Bytes
		return costOfRounds(f.steps, n, n).addFold(f, n)
	},
}

package coll

// reduceBinomial is Reduce up a binomial tree. If the order of operands matters, the tree's root must be rank 0, so
// that every subtree is a range of ranks; rank 0 then sends the result to the call's root.
//
//	T = ⌈log₂ p⌉·(α + nβ + nγ), and α + nβ more if the order matters and the root
//	is not 0
var reduceBinomial = &Algorithm{
	Name:   "binomial",
	Source: "Thakur, Rabenseifner, Gropp, Optimization of Collective Communication Operations in MPICH (2005), 3.5",
	build: func(call *Call, schedule *Schedule) {
		top := call.Root
		if call.Ordered {
			top = 0
		}
		n, p, v := call.Bytes, call.Ranks, (call.Rank-top+call.Ranks)%call.Ranks
		actual := func(v int) int { return (v + top) % p }
		own, ready := Loc{Buf: SendBuf}, 0
		var acc, tmp Loc
		if firstChild(v, p) > 0 {
			tmp = schedule.reserve(n)
			acc = schedule.reserve(n)
		}
		if call.Rank == call.Root {
			acc, own = Loc{Buf: RecvBuf}, call.inputLoc()
		}
		have := own // location of the rank's partial result
		free := 0
		for d := 1; d < subtree(v, p); d *= 2 {
			peer := actual(v + d)
			if have != acc { // receive the first message at the location of the result
				ready = schedule.reduce(acc, own, n, schedule.recv(peer, acc, n))
				have = acc
				continue
			}
			got := schedule.recv(peer, tmp, n, free)
			ready = schedule.combine(false, acc, tmp, n, got, ready)
			free = ready
		}
		if v != 0 {
			ready = schedule.send(actual(parent(v)), have, n, ready)
		}
		if top == call.Root {
			return
		}
		if v == 0 {
			schedule.send(call.Root, have, n, ready)
		} else if call.Rank == call.Root {
			schedule.recv(0, acc, n, ready)
		}
	},
	cost: func(c *Call) Cost {
		cost := costOfRounds(log2(c.Ranks), c.Bytes, c.Bytes)
		if c.Ordered && c.Root != 0 {
			cost.Rounds++
			cost.Bytes += c.Bytes
		}
		return cost
	},
}

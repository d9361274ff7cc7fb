package coll

// reduceRabenseifner is Reduce as a reduce-scatter by recursive halving, followed by a gather of the pieces up a
// binomial tree to the root. With g the greatest power of two ≤ p:
//
//	T = 2·log₂ g·α + 2·(g−1)/g·nβ + (g−1)/g·nγ, and α + nβ + nγ more if g < p
var reduceRabenseifner = &Algorithm{
	Name:   "rabenseifner",
	Source: "Rabenseifner, Optimization of Collective Reduction Operations (2004)",
	build: func(call *Call, schedule *Schedule) {
		n, f := call.Bytes, newFold(call.Ranks, call.Root)
		schedule.Window = 4
		me, on := f.groupNumber(call.Rank)
		if !on {
			schedule.send(call.Rank^1, Loc{Buf: SendBuf}, n)
			return
		}
		tmp, acc := schedule.reserve(n), Loc{Buf: RecvBuf}
		own := call.inputLoc()
		if call.Rank != call.Root {
			acc, own = schedule.reserve(n), Loc{Buf: SendBuf}
		}
		own, ready := f.foldIn(call, schedule, own, acc, tmp, n, 0)
		at := func(i int) int { return call.partOffset(n, f.group, i) }
		halves, lo, hi, ready := f.halve(call, schedule, own, acc, tmp, at, ready)
		root, _ := f.groupNumber(call.Root)
		for i := len(halves) - 1; i >= 0; i-- {
			h := halves[i]
			if (me^root)>>i&1 != 0 {
				schedule.send(h.peer, acc.offset(at(lo)), at(hi)-at(lo), ready)
				return
			}
			ready = schedule.join(ready, schedule.recv(h.peer, acc.offset(at(h.lo)), at(h.hi)-at(h.lo), h.sendStep))
			lo, hi = min(lo, h.lo), max(hi, h.hi)
		}
	},
	cost: func(c *Call) Cost {
		f, n := newFold(c.Ranks, c.Root), c.Bytes
		part := allButOne(n, f.group)
		cost := Cost{Rounds: 2 * f.steps, Bytes: 2 * part, Reduced: part}
		if f.extra > 0 {
			cost.Rounds, cost.Bytes, cost.Reduced = cost.Rounds+1, cost.Bytes+n, cost.Reduced+n
		}
		return cost
	},
}

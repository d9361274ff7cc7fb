package coll

// allreduceRabenseifner is Allreduce as a reduce-scatter by recursive halving, followed by an allgather with the same
// exchanges in reverse order. With g the greatest power of two ≤ p:
//
//	T = 2·log₂ g·α + 2·(g−1)/g·nβ + (g−1)/g·nγ, and 2α + 2nβ + nγ more if g < p
var allreduceRabenseifner = &Algorithm{
	Name:   "rabenseifner",
	Source: "Rabenseifner, Optimization of Collective Reduction Operations (2004)",
	build: func(call *Call, schedule *Schedule) {
		n, f := call.Bytes, newFold(call.Ranks, -1)
		acc, tmp := Loc{Buf: RecvBuf}, schedule.reserve(n)
		schedule.Window = 4
		own, ready := f.foldIn(call, schedule, call.inputLoc(), acc, tmp, n, 0)
		if _, on := f.groupNumber(call.Rank); on {
			at := func(i int) int { return call.partOffset(n, f.group, i) }
			halves, lo, hi, last := f.halve(call, schedule, own, acc, tmp, at, ready)
			ready = last
			for i := len(halves) - 1; i >= 0; i-- {
				h := halves[i]
				schedule.send(h.peer, acc.offset(at(lo)), at(hi)-at(lo), ready)
				// The rank receives the same part that it sent to this peer during the reduce-scatter.
				ready = schedule.join(ready, schedule.recv(h.peer, acc.offset(at(h.lo)), at(h.hi)-at(h.lo), h.sendStep))
				lo, hi = min(lo, h.lo), max(hi, h.hi)
			}
		}
		f.foldOut(call, schedule, acc, n, ready)
	},
	cost: func(c *Call) Cost {
		f, n := newFold(c.Ranks, -1), c.Bytes
		part := allButOne(n, f.group)
		return Cost{Rounds: 2 * f.steps, Bytes: 2 * part, Reduced: part}.addFold(f, n)
	},
}

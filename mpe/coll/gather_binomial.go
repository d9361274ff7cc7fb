package coll

// gatherBinomial and scatterBinomial are Gather and Scatter in a binomial tree, whose inner ranks collect or distribute
// the blocks of their subtrees.
//
//	T = ⌈log₂ p⌉·α + (p−1)·nβ, n bytes a block
var gatherBinomial = &Algorithm{
	Name:        "binomial",
	Source:      "Thakur, Rabenseifner, Gropp, Optimization of Collective Communication Operations in MPICH (2005), 2",
	unsupported: requireUniform,
	build: func(call *Call, schedule *Schedule) {
		p, v, n := call.Ranks, call.virtualRank(), call.Bytes
		size := subtree(v, p)
		if v == 0 {
			if !call.InPlace {
				schedule.copy(Loc{RecvBuf, call.Rank * n}, Loc{Buf: SendBuf}, n)
			}
			for d := 1; d < p; d *= 2 {
				w := call.actualRank(d)
				into, rest := call.subtreeLoc(schedule, w, subtree(d, p))
				got := schedule.recv(w, into, subtree(d, p)*n)
				if rest > 0 {
					schedule.copy(Loc{RecvBuf, w * n}, into, (p-w)*n, got)
					schedule.copy(Loc{Buf: RecvBuf}, into.offset((p-w)*n), rest*n, got)
				}
			}
			return
		}
		if size == 1 {
			schedule.send(call.actualRank(parent(v)), Loc{Buf: SendBuf}, n)
			return
		}
		tmp := schedule.reserve(size * n)
		ready := schedule.copy(tmp, Loc{Buf: SendBuf}, n)
		for d := 1; d < size; d *= 2 {
			ready = schedule.join(ready, schedule.recv(call.actualRank(v+d), tmp.offset(d*n), subtree(v+d, p)*n))
		}
		schedule.Window = 2
		schedule.send(call.actualRank(parent(v)), tmp, size*n, ready)
	},
	cost: allgatherBruck.cost, // also ⌈log₂ p⌉ messages, with p−1 blocks in total
}

var scatterBinomial = &Algorithm{
	Name:        "binomial",
	Source:      "Thakur, Rabenseifner, Gropp, Optimization of Collective Communication Operations in MPICH (2005), 2",
	unsupported: requireUniform,
	build: func(call *Call, schedule *Schedule) {
		p, v, n := call.Ranks, call.virtualRank(), call.Bytes
		size := subtree(v, p)
		if v == 0 {
			for d := firstChild(0, p); d > 0; d /= 2 {
				w := call.actualRank(d)
				from, rest := call.subtreeLoc(schedule, w, subtree(d, p))
				ready := 0
				if rest > 0 {
					ready = schedule.join(schedule.copy(from, Loc{SendBuf, w * n}, (p-w)*n),
						schedule.copy(from.offset((p-w)*n), Loc{Buf: SendBuf}, rest*n))
				} else {
					from = Loc{SendBuf, w * n}
				}
				schedule.send(w, from, subtree(d, p)*n, ready)
			}
			if !call.InPlace {
				schedule.copy(Loc{Buf: RecvBuf}, Loc{SendBuf, call.Rank * n}, n)
			}
			return
		}
		if size == 1 {
			schedule.recv(call.actualRank(parent(v)), Loc{Buf: RecvBuf}, n)
			return
		}
		tmp := schedule.reserve(size * n)
		got := schedule.recv(call.actualRank(parent(v)), tmp, size*n)
		for d := firstChild(v, p); d > 0; d /= 2 {
			schedule.send(call.actualRank(v+d), tmp.offset(d*n), subtree(v+d, p)*n, got)
		}
		schedule.copy(Loc{Buf: RecvBuf}, tmp, n, got)
	},
	cost: allgatherBruck.cost, // also ⌈log₂ p⌉ messages, with p−1 blocks in total
}

// subtreeLoc returns the root's location for the blocks of a subtree of size ranks, beginning with rank w. If the ranks
// of the subtree wrap around, the location is in scratch, and rest is the number of ranks from rank 0 on.
func (c *Call) subtreeLoc(s *Schedule, w, size int) (at Loc, rest int) {
	if w+size <= c.Ranks {
		return Loc{RecvBuf, w * c.Bytes}, 0
	}
	return s.reserve(size * c.Bytes), w + size - c.Ranks
}

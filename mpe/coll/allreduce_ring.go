package coll

// allreduceRing is Allreduce in a ring: each piece of the vector travels around the ring once, and each rank adds its
// contribution; then the results travel around the ring. The operation must be commutative, because each piece starts
// at a different rank.
//
//	T = 2(p−1)·α + 2·(p−1)/p·nβ + (p−1)/p·nγ
var allreduceRing = &Algorithm{
	Name:        "ring",
	Source:      "Patarasuk, Yuan, Bandwidth Optimal All-reduce Algorithms for Clusters of Workstations (2009)",
	unsupported: requireCommutative,
	build: func(call *Call, schedule *Schedule) {
		p, n := call.Ranks, call.Bytes
		schedule.Window = 4
		left, right := (call.Rank-1+p)%p, (call.Rank+1)%p
		at := func(i int) (off, size int) {
			i = (i + 2*p) % p
			off = call.partOffset(n, p, i)
			return off, call.partOffset(n, p, i+1) - off
		}
		acc, own := Loc{Buf: RecvBuf}, call.inputLoc()
		var tmp [2]Loc
		if call.InPlace {
			most := call.partOffset(n, p, 1)
			tmp = [2]Loc{schedule.reserve(most), schedule.reserve(most)}
		}
		ready, from := 0, own
		var free [2]int
		sent := make([]int, p-1)
		schedule.rounds(p-1, func(i int) {
			off, size := at(call.Rank - i)
			sent[i] = schedule.send(right, from.offset(off), size, ready)
			off, size = at(call.Rank - i - 1)
			if call.InPlace {
				t := i % 2
				got := schedule.recv(left, tmp[t], size, free[t])
				ready = schedule.reduce(acc.offset(off), tmp[t], size, got)
				if size > 0 {
					free[t] = ready
				}
			} else {
				// Receive the piece at the location of the result, and combine it there with the contribution, without
				// a copy.
				got := schedule.recv(left, acc.offset(off), size)
				ready = schedule.reduce(acc.offset(off), own.offset(off), size, got)
			}
			from = acc
		})
		// This rank now holds the result of piece rank+1. Each piece received from now on replaces the piece sent in
		// the same round of the first part.
		schedule.rounds(p-1, func(i int) {
			off, size := at(call.Rank + 1 - i)
			schedule.send(right, acc.offset(off), size, ready)
			off, size = at(call.Rank - i)
			ready = schedule.recv(left, acc.offset(off), size, sent[i])
		})
	},
	cost: func(c *Call) Cost {
		part := allButOne(c.Bytes, c.Ranks)
		return Cost{Rounds: 2 * (c.Ranks - 1), Bytes: 2 * part, Reduced: part}
	},
}

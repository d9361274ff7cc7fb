package coll

// reduceScatterPairwise is ReduceScatter in p−1 rounds: in round i, each rank sends its contribution to the block of
// the rank at distance i after it, and receives a contribution to its own block from the rank at distance i before it.
// If the order of operands matters, a rank stores all contributions and combines them at the end, in rank order.
//
//	T = (p−1)·(α + nβ + nγ), n bytes a block; if blocks differ in size, n is the size of
//	the largest, and T an upper bound
var reduceScatterPairwise = &Algorithm{
	Name:   "pairwise",
	Source: "Thakur, Rabenseifner, Gropp, Optimization of Collective Communication Operations in MPICH (2005), 3.4",
	build: func(call *Call, schedule *Schedule) {
		p, r := call.Ranks, call.Rank
		own, acc := call.inputLoc(), Loc{Buf: RecvBuf}
		off, n := call.Block(&call.Recv, r)
		if call.InPlace { // blocks still to be sent occupy the location of the result
			acc = schedule.reserve(n)
		}
		schedule.Window = 4
		if call.Ordered {
			reduceScatterInOrder(call, schedule, own, acc)
			return
		}
		tmp := [2]Loc{schedule.reserve(n), schedule.reserve(n)}
		var free [2]int
		ready := schedule.copy(acc, own.offset(off), n)
		schedule.rounds(p-1, func(i int) {
			to, of, t := (r+i+1)%p, (r-i-1+p)%p, i%2
			there, size := call.Block(&call.Recv, to)
			schedule.send(to, own.offset(there), size)
			got := schedule.recv(of, tmp[t], n, free[t])
			ready = schedule.reduce(acc, tmp[t], n, got, ready)
			free[t] = ready
		})
		copyResult(call, schedule, acc, n)
	},
	cost: func(c *Call) Cost {
		_, most := c.blockSizes(&c.Recv)
		return costOfRounds(c.Ranks-1, most, most)
	},
}

// reduceScatterInOrder stores the contributions separately, and combines them from the last rank to the first, so that
// the next operand is always from a lower rank.
func reduceScatterInOrder(call *Call, schedule *Schedule, own, acc Loc) {
	p, r := call.Ranks, call.Rank
	off, n := call.Block(&call.Recv, r)
	kept := schedule.reserve((p - 1) * n)
	place := func(rank int) Loc {
		if rank == p-1 {
			return acc
		}
		return kept.offset(rank * n)
	}
	schedule.copy(place(r), own.offset(off), n)
	schedule.rounds(p-1, func(i int) {
		to, of := (r+i+1)%p, (r-i-1+p)%p
		there, size := call.Block(&call.Recv, to)
		schedule.send(to, own.offset(there), size)
		schedule.recv(of, place(of), n)
	})
	ready := 0
	schedule.rounds(p-1, func(i int) {
		if i == 0 {
			ready = schedule.fence()
		}
		ready = schedule.reduce(acc, place(p-2-i), n, ready)
	})
	copyResult(call, schedule, acc, n)
}

// copyResult copies the result of an in-place call over the contribution, once all blocks of the contribution are sent.
func copyResult(c *Call, s *Schedule, acc Loc, n int) {
	if c.InPlace {
		s.rounds(1, func(int) { s.copy(Loc{Buf: RecvBuf}, acc, n, AllEarlier) })
	}
}

package coll

// scanChain and exscanChain are Scan and Exscan along a chain of ranks, in segments: each rank receives the combination
// of all ranks before it, adds its own contribution, and sends the result to the next rank. They suit long vectors.
//
//	T = (p − 2 + k)·α + (n + (p−2)·b)·(β + γ), k segments of b bytes; in Exscan the last
//	rank need not combine: one b less of γ
var scanChain = &Algorithm{
	Name:      "chain",
	Source:    "the pipelined linear array; Sanders, Träff, Parallel Prefix (Scan) Algorithms for MPI (2006), 2",
	Segmented: true,
	build: func(call *Call, schedule *Schedule) {
		schedule.Window = 4
		k, b := call.segments(call.Bytes)
		tmp := [2]Loc{schedule.reserve(b), schedule.reserve(b)}
		var free [2]int
		schedule.rounds(k, func(i int) {
			off, n, t := i*b, min(b, call.Bytes-i*b), i%2
			acc, ready := Loc{RecvBuf, off}, 0
			if !call.InPlace {
				ready = schedule.copy(acc, Loc{SendBuf, off}, n)
			}
			if call.Rank > 0 {
				got := schedule.recv(call.Rank-1, tmp[t], n, free[t])
				ready = schedule.reduce(acc, tmp[t], n, ready, got)
				free[t] = ready
			}
			if call.Rank < call.Ranks-1 {
				schedule.send(call.Rank+1, acc, n, ready)
			}
		})
	},
	cost: func(c *Call) Cost {
		cost := bcastChain.cost(c)
		cost.Reduced = cost.Bytes
		return cost
	},
}

var exscanChain = &Algorithm{
	Name:      "chain",
	Source:    "the pipelined linear array; Sanders, Träff, Parallel Prefix (Scan) Algorithms for MPI (2006), 2",
	Segmented: true,
	build: func(call *Call, schedule *Schedule) {
		schedule.Window = 4
		k, b := call.segments(call.Bytes)
		part := [2]Loc{schedule.reserve(b), schedule.reserve(b)}
		var free [2]int
		schedule.rounds(k, func(i int) {
			off, n, t := i*b, min(b, call.Bytes-i*b), i%2
			result, mine := Loc{RecvBuf, off}, call.inputLoc().offset(off)
			if call.Rank == 0 {
				schedule.send(1, mine, n)
				return
			}
			if call.Rank == call.Ranks-1 {
				schedule.recv(call.Rank-1, result, n)
				return
			}
			kept := schedule.copy(part[t], mine, n, free[t])
			after := 0
			if call.InPlace {
				after = kept
			}
			got := schedule.recv(call.Rank-1, result, n, after)
			free[t] = schedule.send(call.Rank+1, part[t], n, schedule.reduce(part[t], result, n, kept, got))
		})
	},
	cost: func(c *Call) Cost {
		cost := bcastChain.cost(c)
		k, b := c.segments(c.Bytes)
		if k > 0 && c.Ranks > 2 {
			cost.Reduced = c.Bytes + (c.Ranks-3)*b
		}
		return cost
	},
}

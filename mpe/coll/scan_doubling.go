package coll

// scanDoubling and exscanDoubling are Scan and Exscan by recursive doubling: in round k, each rank sends its partial
// result, the combination of the last 2^k ranks up to itself, to the rank at distance 2^k after it.
//
//	T = ⌈log₂ p⌉·(α + nβ + nγ); Exscan combines the result and the value that it sends
//	separately, so up to twice the nγ
var scanDoubling = &Algorithm{
	Name:   "doubling",
	Source: "Hillis, Steele, Data Parallel Algorithms (1986)",
	build: func(call *Call, schedule *Schedule) {
		n, acc := call.Bytes, Loc{Buf: RecvBuf}
		schedule.Window = 3
		tmp := [2]Loc{schedule.reserve(n), schedule.reserve(n)}
		var free [2]int
		ready := copyInput(call, schedule, acc, n)
		for k, d := 0, 1; d < call.Ranks; k, d = k+1, 2*d {
			t, sent := k%2, 0
			if call.Rank+d < call.Ranks {
				sent = schedule.send(call.Rank+d, acc, n, ready)
			}
			if call.Rank >= d {
				got := schedule.recv(call.Rank-d, tmp[t], n, free[t])
				ready = schedule.reduce(acc, tmp[t], n, ready, sent, got)
				free[t] = ready
			}
		}
	},
	cost: func(c *Call) Cost {
		return costOfRounds(log2(c.Ranks), c.Bytes, c.Bytes)
	},
}

var exscanDoubling = &Algorithm{
	Name:   "doubling",
	Source: "Hillis, Steele, Data Parallel Algorithms (1986)",
	build: func(call *Call, schedule *Schedule) {
		n, result := call.Bytes, Loc{Buf: RecvBuf}
		schedule.Window = 4
		part := schedule.reserve(n)
		tmp := [2]Loc{schedule.reserve(n), schedule.reserve(n)}
		var free [2]int
		ready := 0
		if call.Rank < call.Ranks-1 { // no rank uses the last rank's contribution
			ready = schedule.copy(part, call.inputLoc(), n)
		}
		whole := ready // the contribution may be at the location of the result
		for k, d := 0, 1; d < call.Ranks; k, d = k+1, 2*d {
			t, sent := k%2, 0
			if call.Rank+d < call.Ranks {
				sent = schedule.send(call.Rank+d, part, n, ready)
			}
			if call.Rank < d {
				continue
			}
			from, got := result, 0
			if k == 0 {
				got = schedule.recv(call.Rank-d, result, n, whole)
				whole = got
			} else {
				from = tmp[t]
				got = schedule.recv(call.Rank-d, from, n, free[t])
			}
			if call.Rank+2*d < call.Ranks { // part is sent once more
				ready = schedule.reduce(part, from, n, ready, sent, got)
			}
			if k > 0 {
				whole = schedule.reduce(result, from, n, whole, got, ready)
				free[t] = whole
			} else {
				whole = schedule.join(got, ready)
			}
		}
	},
	cost: func(c *Call) Cost {
		cost := costOfRounds(log2(c.Ranks), c.Bytes, 2*c.Bytes)
		cost.Reduced -= c.Bytes
		return cost
	},
}

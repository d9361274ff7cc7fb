package coll

// scanChain and exscanChain pass partial results along a chain of ranks, in segments: each rank receives the
// combination of all ranks before it, adds its own contribution, and sends the result to the next rank. They are
// for long vectors.
//
//	T = (p − 2 + k)·α + (n + (p−2)·b)·(β + γ), k segments of b bytes; in Exscan the last
//	rank need not combine: one b less of γ
var scanChain = &Algorithm{
	Name:      "chain",
	Source:    "the pipelined linear array; Sanders, Träff, Parallel Prefix (Scan) Algorithms for MPI (2006), 2",
	Segmented: true,
	build: func(c *Call, s *Schedule) {
		s.Window = 4
		k, b := c.segments(c.Bytes)
		tmp := [2]Loc{s.reserve(b), s.reserve(b)}
		var free [2]int
		s.rounds(k, func(i int) {
			off, n, t := i*b, min(b, c.Bytes-i*b), i%2
			acc, ready := Loc{RecvBuf, off}, 0
			if !c.InPlace {
				ready = s.copy(acc, Loc{SendBuf, off}, n)
			}
			if c.Rank > 0 {
				got := s.recv(c.Rank-1, tmp[t], n, free[t])
				ready = s.reduce(acc, tmp[t], n, ready, got)
				free[t] = ready
			}
			if c.Rank < c.Ranks-1 {
				s.send(c.Rank+1, acc, n, ready)
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
	build: func(c *Call, s *Schedule) {
		s.Window = 4
		k, b := c.segments(c.Bytes)
		part := [2]Loc{s.reserve(b), s.reserve(b)}
		var free [2]int
		s.rounds(k, func(i int) {
			off, n, t := i*b, min(b, c.Bytes-i*b), i%2
			result, mine := Loc{RecvBuf, off}, c.inputLoc().offset(off)
			if c.Rank == 0 {
				s.send(1, mine, n)
				return
			}
			if c.Rank == c.Ranks-1 {
				s.recv(c.Rank-1, result, n)
				return
			}
			kept := s.copy(part[t], mine, n, free[t])
			after := 0
			if c.InPlace {
				after = kept
			}
			got := s.recv(c.Rank-1, result, n, after)
			free[t] = s.send(c.Rank+1, part[t], n, s.reduce(part[t], result, n, kept, got))
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

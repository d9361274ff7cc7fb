package coll

// alltoallBruck is Bruck's Alltoall: in round k, all blocks whose distance to their destination has bit k set travel
// 2^k ranks in one message. It needs few messages, but sends each block several times.
//
//	T = ⌈log₂ p⌉·α + m·nβ, n bytes a block, and m the number of bits set in 1 to p−1:
//	about p/2·log₂ p
var alltoallBruck = &Algorithm{
	Name: "bruck",
	Source: "Bruck, Ho, Kipnis, Upfal, Weathersby, Efficient Algorithms for All-to-All Communications in Multiport " +
		"Message-Passing Systems (1997)",
	unsupported: requireUniform,
	build: func(c *Call, schedule *Schedule) {
		p, n, r := c.Ranks, c.Bytes, c.Rank
		if n == 0 {
			return
		}
		own := c.inputLoc()
		// tmp holds, at index d, the block for the rank at distance d. After the last round, it holds the block
		// from the rank at distance d before this rank.
		tmp, out, in := schedule.reserve(p*n), schedule.reserve((p+1)/2*n), schedule.reserve((p+1)/2*n)
		schedule.copy(tmp, own.offset(r*n), (p-r)*n)
		schedule.copy(tmp.offset((p-r)*n), own, r*n)
		ready := schedule.fence()
		schedule.Window = 3
		schedule.rounds(log2(p), func(k int) {
			bit := 1 << k
			packed := 0
			for d := bit; d < p; d++ {
				if d&bit != 0 {
					schedule.copy(out.offset(packed), tmp.offset(d*n), n, ready)
					packed += n
				}
			}
			all := schedule.fence()
			schedule.send((r+bit)%p, out, packed, all)
			got := schedule.recv((r-bit+p)%p, in, packed, ready)
			packed = 0
			for d := bit; d < p; d++ {
				if d&bit != 0 {
					schedule.copy(tmp.offset(d*n), in.offset(packed), n, got, all)
					packed += n
				}
			}
			ready = schedule.fence()
		})
		schedule.rounds(1, func(int) {
			for d := range p {
				schedule.copy(Loc{RecvBuf, (r - d + p) % p * n}, tmp.offset(d*n), n, ready)
			}
		})
	},
	cost: func(call *Call) Cost {
		p, h, set := call.Ranks, log2(call.Ranks), 0
		if call.Bytes == 0 {
			return Cost{}
		}
		for k := range h {
			set += bitsSet(p, k)
		}
		return Cost{Rounds: h, Bytes: set * call.Bytes}
	},
}

// bitsSet returns the number of integers from 0 to p−1 that have bit k set.
func bitsSet(p, k int) int {
	bit := 1 << k
	return p/(2*bit)*bit + max(0, p%(2*bit)-bit)
}

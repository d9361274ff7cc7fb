package coll

// allgatherDoubling is Allgather by recursive doubling: in round k, ranks whose numbers differ in bit k exchange all
// blocks that they hold. The number of ranks must be a power of two.
//
//	T = log₂ p·α + (p−1)·nβ, n bytes a block
var allgatherDoubling = &Algorithm{
	Name:   "recursive-doubling",
	Source: "Thakur, Rabenseifner, Gropp, Optimization of Collective Communication Operations in MPICH (2005), 3.1",
	unsupported: func(c *Call) string {
		if c.Ranks&(c.Ranks-1) != 0 {
			return "the number of ranks must be a power of two"
		}
		return requireUniform(c)
	},
	build: func(call *Call, schedule *Schedule) {
		n := call.Bytes
		schedule.Window = 3
		ready := 0
		if !call.InPlace {
			ready = schedule.copy(Loc{RecvBuf, call.Rank * n}, Loc{Buf: SendBuf}, n)
		}
		for mask := 1; mask < call.Ranks; mask <<= 1 {
			peer := call.Rank ^ mask
			mine, theirs := call.Rank&^(mask-1), peer&^(mask-1)
			schedule.send(peer, Loc{RecvBuf, mine * n}, mask*n, ready)
			ready = schedule.join(ready, schedule.recv(peer, Loc{RecvBuf, theirs * n}, mask*n))
		}
	},
	cost: allgatherBruck.cost,
}

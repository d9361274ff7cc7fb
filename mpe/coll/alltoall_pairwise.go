package coll

// exchangedAtOnce is the maximum total size in bytes of the blocks that a rank sends at the same time, and likewise of
// the blocks that it receives. A single block may be longer.
const exchangedAtOnce = 1 << 20

// alltoallPairwise is Alltoall in p−1 rounds: in round i, each rank sends to the rank at distance i after it, and
// receives from the rank at distance i before it. Rounds of short blocks are independent of each other, and the
// executor determines how many are in progress. A long block waits for a block some rounds earlier, so that blocks are
// still in the cache when they are received. Rounds are not strictly sequential, because all ranks would then wait for
// the last rank to make the call.
//
//	T = (p−1)·(α + nβ), n bytes a block; with blocks of different sizes there is no
//	formula that one rank could compute
var alltoallPairwise = &Algorithm{
	Name:   "pairwise",
	Source: "Thakur, Rabenseifner, Gropp, Optimization of Collective Communication Operations in MPICH (2005), 3.3",
	build: func(call *Call, schedule *Schedule) {
		p, r := call.Ranks, call.Rank
		schedule.Window = 3
		buf, layout := Loc{Buf: SendBuf}, &call.Send
		ready := 0
		if call.InPlace { // send from a copy, because received blocks overwrite the originals
			layout = &call.Recv
			end := 0
			for i := range p {
				off, n := call.Block(layout, i)
				end = max(end, off+n)
			}
			buf = schedule.reserve(end)
			ready = schedule.copy(buf, Loc{Buf: RecvBuf}, end)
		} else {
			from, n := call.Block(&call.Send, r)
			into, _ := call.Block(&call.Recv, r)
			schedule.copy(Loc{RecvBuf, into}, Loc{SendBuf, from}, n)
		}
		got := make([]int, p-1)
		schedule.rounds(p-1, func(i int) {
			to, of := (r+i+1)%p, (r-i-1+p)%p
			off, n := call.Block(layout, to)
			schedule.send(to, buf.offset(off), n, ready, earlierRecv(got[:i], n))
			off, n = call.Block(&call.Recv, of)
			got[i] = schedule.recv(of, Loc{RecvBuf, off}, n, ready, earlierRecv(got[:i], n))
		})
	},
	cost: func(c *Call) Cost {
		return costOfRounds(c.Ranks-1, c.Bytes, 0)
	},
}

// earlierRecv returns the number of an earlier receive in the list got, which must complete before a block of n bytes
// is exchanged. It returns 0 if there is none.
func earlierRecv(got []int, n int) int {
	if back := max(1, exchangedAtOnce/max(n, 1)); back <= len(got) {
		return got[len(got)-back]
	}
	return 0
}

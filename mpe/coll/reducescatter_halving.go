package coll

// reduceScatterHalving is ReduceScatter by recursive halving: in each round, a rank sends half of its blocks to another
// rank, and combines the other half with the blocks received from that rank. The distance between the two ranks halves
// from round to round. The operation must be commutative. With p a power of two:
//
//	T = log₂ p·α + (p−1)/p·(nβ + nγ), n bytes in all
//
// Otherwise, neighbors first combine their vectors. One of the two continues with the blocks of both, and sends its
// neighbor's block back at the end. This adds at most
//
//	2α + n·(1 + 3/p)·(β + γ)
//
// In this case, the exchanged halves also differ in size.
var reduceScatterHalving = &Algorithm{
	Name:        "recursive-halving",
	Source:      "Thakur, Rabenseifner, Gropp, Optimization of Collective Communication Operations in MPICH (2005), 3.4",
	unsupported: requireCommutative,
	build: func(call *Call, schedule *Schedule) {
		total, _ := call.blockSizes(&call.Recv)
		f := newFold(call.Ranks, -1)
		schedule.Window = 4
		// at returns the offset at which the blocks of group number i begin.
		at := func(i int) int {
			first := i + f.extra
			if i < f.extra {
				first = 2 * i
			}
			if first == call.Ranks {
				return total
			}
			off, _ := call.Block(&call.Recv, first)
			return off
		}
		off, n := call.Block(&call.Recv, call.Rank)
		acc, tmp := schedule.reserve(total), schedule.reserve(total)
		own, ready := f.foldIn(call, schedule, call.inputLoc(), acc, tmp, total, 0)
		me, on := f.groupNumber(call.Rank)
		if !on {
			schedule.recv(call.Rank^1, Loc{Buf: RecvBuf}, n, AllEarlier)
			return
		}
		lo, hi := 0, f.group
		for mask := f.group / 2; mask > 0; mask /= 2 {
			peer, mid := f.actualRank(me^mask), (lo+hi)/2
			giveLo, giveHi := mid, hi
			if me&mask != 0 {
				giveLo, giveHi = lo, mid
				lo = mid
			} else {
				hi = mid
			}
			schedule.send(peer, own.offset(at(giveLo)), at(giveHi)-at(giveLo), ready)
			from, n := at(lo), at(hi)-at(lo)
			if red := schedule.recvCombine(true, peer, own.offset(from), acc.offset(from), tmp.offset(from), n,
				ready); red != 0 {
				ready = red
			}
			own = acc
		}
		if f.hasNeighbor(call.Rank) {
			there, size := call.Block(&call.Recv, call.Rank^1)
			schedule.send(call.Rank^1, acc.offset(there), size, ready)
		}
		schedule.copy(Loc{Buf: RecvBuf}, acc.offset(off), n, AllEarlier) // own may be sent from there
	},
	cost: func(call *Call) Cost {
		f := newFold(call.Ranks, -1)
		total, most := call.blockSizes(&call.Recv)
		part := allButOne(total, f.group)
		cost := Cost{Rounds: f.steps, Bytes: part, Reduced: part}
		if f.extra > 0 || call.Vector {
			greater := call.greaterHalves(f)
			cost.Bytes, cost.Reduced = greater, greater
		}
		if f.extra > 0 {
			cost.Rounds += 2
			cost.Bytes += total + most
			cost.Reduced += total
		}
		return cost
	},
}

// greaterHalves returns the number of bytes exchanged one after another if the halves differ in size. The greater half
// determines how long each exchange takes.
func (c *Call) greaterHalves(f fold) (bytes int) {
	for width := f.group; width > 1; width /= 2 {
		greater := 0
		for lo := 0; lo < f.group; lo += width / 2 {
			greater = max(greater, c.groupBlocks(f, lo, lo+width/2))
		}
		bytes += greater
	}
	return bytes
}

// groupBlocks returns the total size of the blocks that belong to group numbers lo to hi−1.
func (c *Call) groupBlocks(f fold, lo, hi int) (n int) {
	for i := lo; i < hi; i++ {
		_, size := c.Block(&c.Recv, f.actualRank(i))
		n += size
		if i < f.extra {
			_, size = c.Block(&c.Recv, f.actualRank(i)^1)
			n += size
		}
	}
	return n
}

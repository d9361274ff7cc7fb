package coll

// reduceScatterHalving: in each round a rank gives half of the blocks that it holds to
// the rank that is half the distance away, and combines the other half with what it
// gets. The operation must be commutative. With p a power of two:
//
//	T = log₂ p·α + (p−1)/p·(nβ + nγ), n bytes in all
//
// Otherwise neighbours combine all that they have first, one of them goes on with the
// blocks of both and gives the other its own at the end, at most
//
//	2α + n·(1 + 3/p)·(β + γ) more
//
// where the halves of the exchanges are not equal, either.
var reduceScatterHalving = &Algorithm{
	Name:   "recursive-halving",
	Source: "Thakur, Rabenseifner, Gropp, Optimization of Collective Communication Operations in MPICH (2005), 3.4",
	fits:   unordered,
	build: func(c *Call, s *Schedule) {
		total, _ := c.vector(&c.Recv)
		f := newFold(c.Ranks, -1)
		s.Window = 4
		// start of the blocks of number i of the group, in bytes
		at := func(i int) int {
			first := i + f.extra
			if i < f.extra {
				first = 2 * i
			}
			if first == c.Ranks {
				return total
			}
			off, _ := c.Block(&c.Recv, first)
			return off
		}
		off, n := c.Block(&c.Recv, c.Rank)
		acc, tmp := s.reserve(total), s.reserve(total)
		ready := f.in(c, s, acc, tmp, total, start(c, s, acc, total))
		me, on := f.number(c.Rank)
		if !on {
			s.recv(c.Rank^1, Loc{Buf: RecvBuf}, n, Everything)
			return
		}
		lo, hi := 0, f.group
		for mask := f.group / 2; mask > 0; mask /= 2 {
			peer, mid := f.actual(me^mask), (lo+hi)/2
			giveLo, giveHi := mid, hi
			if me&mask != 0 {
				giveLo, giveHi = lo, mid
				lo = mid
			} else {
				hi = mid
			}
			s.send(peer, acc.at(at(giveLo)), at(giveHi)-at(giveLo), ready)
			size := at(hi) - at(lo)
			got := s.recv(peer, tmp.at(at(lo)), size, ready)
			if red := s.reduce(acc.at(at(lo)), tmp.at(at(lo)), size, got, ready); red != 0 {
				ready = red
			}
		}
		if f.folds(c.Rank) {
			there, size := c.Block(&c.Recv, c.Rank^1)
			s.send(c.Rank^1, acc.at(there), size, ready)
		}
		s.copy(Loc{Buf: RecvBuf}, acc.at(off), n, ready)
	},
	cost: func(c *Call) Cost {
		f := newFold(c.Ranks, -1)
		total, most := c.vector(&c.Recv)
		part := share(total, f.group)
		cost := Cost{Rounds: f.steps, Bytes: part, Reduced: part}
		if f.extra > 0 || c.Vector {
			greater := c.greaterHalves(f)
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

// greaterHalves is how many bytes are exchanged if the halves are not equal: an exchange
// takes as long as the greater of the two.
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

// groupBlocks is how many bytes the blocks of numbers lo to hi−1 of a group have.
func (c *Call) groupBlocks(f fold, lo, hi int) (n int) {
	for i := lo; i < hi; i++ {
		_, size := c.Block(&c.Recv, f.actual(i))
		n += size
		if i < f.extra {
			_, size = c.Block(&c.Recv, f.actual(i)^1)
			n += size
		}
	}
	return n
}

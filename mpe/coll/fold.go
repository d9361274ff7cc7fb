package coll

import "math/bits"

// fold adapts algorithms for 2^k ranks to any number of ranks. Of the first 2·extra ranks, each even rank and its
// neighbor combine their vectors, and one of the two continues for both, as a member of the group. Because only
// neighbors combine, the order of ranks is preserved.
type fold struct {
	// group is the size of the group, the greatest power of two that does not exceed the number of ranks. extra is the
	// number of ranks outside the group. steps is the binary logarithm of group.
	group, extra, steps int
	// keep is a rank that must be a member of the group, or −1 if any ranks will do.
	keep int
}

func newFold(ranks, keep int) fold {
	steps := bits.Len(uint(ranks)) - 1
	return fold{group: 1 << steps, extra: ranks - 1<<steps, steps: steps, keep: keep}
}

// actualRank returns the rank that has number i in the group.
func (f fold) actualRank(i int) int {
	if i >= f.extra {
		return i + f.extra
	}
	if f.keep == 2*i {
		return 2 * i
	}
	return 2*i + 1
}

// groupNumber returns the rank's number in the group. For a rank outside the group, it returns the number of the
// neighbor that continues for both. It also reports whether the rank itself is in the group.
func (f fold) groupNumber(rank int) (int, bool) {
	i := rank - f.extra
	if rank < 2*f.extra {
		i = rank / 2
	}
	return i, f.actualRank(i) == rank
}

// hasNeighbor reports whether the rank has a neighbor with which it combines vectors.
func (f fold) hasNeighbor(rank int) bool { return rank < 2*f.extra }

// foldIn combines the neighbors' vectors of n bytes in acc. own is the location of the rank's own vector after step
// ready: acc, or the caller's memory. It is copied to acc only if the operation is not commutative, because recvCombine
// combines it in acc without a copy. foldIn returns the location of the vector with which the rank continues, and the
// step to wait for, which is the send on a rank outside the group.
func (f fold) foldIn(call *Call, schedule *Schedule, own, acc, tmp Loc, n, ready int) (Loc, int) {
	if own != acc && call.Ordered {
		own, ready = acc, schedule.copy(acc, own, n, ready)
	}
	if !f.hasNeighbor(call.Rank) {
		return own, ready
	}
	if _, on := f.groupNumber(call.Rank); !on {
		return own, schedule.send(call.Rank^1, own, n, ready)
	}
	return acc, schedule.recvCombine(call.Rank&1 == 1, call.Rank^1, own, acc, tmp, n, ready)
}

// foldOut sends the result of n bytes back to the neighbor outside the group.
func (f fold) foldOut(call *Call, schedule *Schedule, at Loc, n, ready int) {
	if !f.hasNeighbor(call.Rank) {
		return
	}
	if _, on := f.groupNumber(call.Rank); on {
		schedule.send(call.Rank^1, at, n, ready)
	} else {
		schedule.recv(call.Rank^1, at, n, ready)
	}
}

// copyInput adds a step that copies the caller's contribution to acc, and returns its number. If the contribution is
// already there, it adds no step and returns 0.
func copyInput(c *Call, s *Schedule, acc Loc, n int) int {
	if from := c.inputLoc(); from != acc {
		return s.copy(acc, from, n)
	}
	return 0
}

// half describes one exchange of halve, in which the rank sends blocks lo to hi−1 to peer in step sendStep.
type half struct {
	peer, lo, hi int
	sendStep     int
}

// halve adds a reduce-scatter in the group by recursive vector halving. In each exchange, a rank sends half of its
// blocks to a rank that holds the same blocks, and combines the other half with the half received. Distances double, so
// that adjacent ranges of ranks are combined, in rank order. at returns the offset of block i, and the end of the last
// block for i = group. own is the location of the rank's vector after step ready, as returned by foldIn. Afterwards acc
// holds the result of blocks lo to hi−1, done lists the exchanges, and last is the step to wait for.
func (f fold) halve(c *Call, schedule *Schedule, own, acc, tmp Loc, at func(i int) int, ready int) (done []half, lo, hi,
	last int) {
	me, _ := f.groupNumber(c.Rank)
	lo, hi = 0, f.group
	for mask := 1; mask < f.group; mask <<= 1 {
		peer, mid := f.actualRank(me^mask), (lo+hi)/2
		give := half{peer: peer, lo: mid, hi: hi}
		upper := me&mask != 0
		if upper {
			give.lo, give.hi = lo, mid
			lo = mid
		} else {
			hi = mid
		}
		give.sendStep = schedule.send(peer, own.offset(at(give.lo)), at(give.hi)-at(give.lo), ready)
		off, n := at(lo), at(hi)-at(lo)
		if red := schedule.recvCombine(upper, peer, own.offset(off), acc.offset(off), tmp.offset(off), n, ready); red != 0 {
			ready = red
		}
		own = acc
		done = append(done, give)
	}
	return done, lo, hi, ready
}

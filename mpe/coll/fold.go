package coll

import "math/bits"

// fold lets algorithms for 2^k ranks run on any number: of the first 2·extra ranks,
// each even one and its neighbour combine what they have, and one of the two goes on
// for both. As neighbours are combined, the order of ranks is kept.
type fold struct {
	// group is the greatest power of two that is not above the number of ranks,
	// extra what is above it, steps the logarithm of group.
	group, extra, steps int
	// keep is a rank that goes on in any case, or −1.
	keep int
}

func newFold(ranks, keep int) fold {
	steps := bits.Len(uint(ranks)) - 1
	return fold{group: 1 << steps, extra: ranks - 1<<steps, steps: steps, keep: keep}
}

// actual is the rank that is number i of the group.
func (f fold) actual(i int) int {
	if i >= f.extra {
		return i + f.extra
	}
	if f.keep == 2*i {
		return 2 * i
	}
	return 2*i + 1
}

// number is the rank's in the group, and whether it is in it at all.
func (f fold) number(rank int) (int, bool) {
	i := rank - f.extra
	if rank < 2*f.extra {
		i = rank / 2
	}
	return i, f.actual(i) == rank
}

// folds reports whether the rank has a neighbour to combine with.
func (f fold) folds(rank int) bool { return rank < 2*f.extra }

// in combines the neighbours' vectors of n bytes in acc, which is complete after
// ready. It gives what to wait for; of a rank that does not go on, its send.
func (f fold) in(c *Call, s *Schedule, acc, tmp Loc, n, ready int) int {
	if !f.folds(c.Rank) {
		return ready
	}
	if _, on := f.number(c.Rank); !on {
		return s.send(c.Rank^1, acc, n, ready)
	}
	got := s.recv(c.Rank^1, tmp, n)
	return s.combine(c.Rank&1 == 1, acc, tmp, n, got, ready)
}

// out gives the neighbour its n bytes of the result.
func (f fold) out(c *Call, s *Schedule, at Loc, n, ready int) {
	if !f.folds(c.Rank) {
		return
	}
	if _, on := f.number(c.Rank); on {
		s.send(c.Rank^1, at, n, ready)
	} else {
		s.recv(c.Rank^1, at, n, ready)
	}
}

// start copies the contribution to acc, where it is not there already.
func start(c *Call, s *Schedule, acc Loc, n int) int {
	if from := c.input(); from != acc {
		return s.copy(acc, from, n)
	}
	return 0
}

// half is one exchange of halve: what went to whom. lo and hi are blocks.
type half struct {
	peer, lo, hi int
	sent         int
}

// halve is a reduce-scatter in the group by recursive vector halving: in each
// exchange a rank gives half of the blocks that it holds to a rank that holds the
// same, and combines the other half with what it gets. Distances double, so that what
// is combined are neighbouring ranges of ranks, and the order is kept. at gives where
// block i begins; at(group) is the end. The rank ends with the blocks lo to hi−1, one
// if there are as many as ranks.
func (f fold) halve(c *Call, s *Schedule, acc, tmp Loc, at func(i int) int, ready int) (done []half, lo, hi, last int) {
	me, _ := f.number(c.Rank)
	lo, hi = 0, f.group
	for mask := 1; mask < f.group; mask <<= 1 {
		peer, mid := f.actual(me^mask), (lo+hi)/2
		give := half{peer: peer, lo: mid, hi: hi}
		upper := me&mask != 0
		if upper {
			give.lo, give.hi = lo, mid
			lo = mid
		} else {
			hi = mid
		}
		give.sent = s.send(peer, acc.at(at(give.lo)), at(give.hi)-at(give.lo), ready)
		n := at(hi) - at(lo)
		got := s.recv(peer, tmp.at(at(lo)), n, ready)
		if red := s.combine(upper, acc.at(at(lo)), tmp.at(at(lo)), n, got, ready); red != 0 {
			ready = red
		}
		done = append(done, give)
	}
	return done, lo, hi, ready
}

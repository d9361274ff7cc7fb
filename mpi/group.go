package mpi

import "slices"

// Group is an ordered set of ranks. It never changes. Its own numbering is 0 to
// Size−1; what it numbers are ranks of the world. Groups of different worlds
// must not be mixed.
type Group struct {
	ranks []int // the world's
	self  int   // the world's number of the calling rank
}

// Comparison is how much two groups or communicators have in common.
type Comparison int

// The outcomes of Compare.
const (
	// Ident: the same ranks in the same order; for communicators: the very
	// same one.
	Ident Comparison = iota
	// Congruent communicators have the same ranks in the same order.
	Congruent
	// Similar: the same ranks in another order.
	Similar
	// Unequal: different ranks.
	Unequal
)

// String is the standard's name of the outcome.
func (c Comparison) String() string {
	names := [...]string{"MPI_IDENT", "MPI_CONGRUENT", "MPI_SIMILAR", "MPI_UNEQUAL"}
	if c < 0 || int(c) >= len(names) {
		return "MPI_UNDEFINED"
	}
	return names[c]
}

// Size is the number of ranks.
func (g *Group) Size() int {
	if g == nil {
		return 0
	}
	return len(g.ranks)
}

// Rank is the calling rank's number in the group, or Undefined if it is not a
// member.
func (g *Group) Rank() int {
	if g == nil {
		return Undefined
	}
	if i := slices.Index(g.ranks, g.self); i >= 0 {
		return i
	}
	return Undefined
}

// index gives the group's numbers of ranks of the world.
func (g *Group) index() map[int]int {
	if g == nil {
		return nil
	}
	m := make(map[int]int, len(g.ranks))
	for i, r := range g.ranks {
		m[r] = i
	}
	return m
}

// Translate gives the numbers that ranks of g have in other: Undefined for those
// that are not members, ProcNull for ProcNull.
func (g *Group) Translate(ranks []int, other *Group) ([]int, error) {
	in := other.index()
	out := make([]int, len(ranks))
	for i, r := range ranks {
		switch {
		case r == ProcNull:
			out[i] = ProcNull
		case r < 0 || r >= g.Size():
			return nil, g.noRank("Group.Translate", r)
		default:
			n, ok := in[g.ranks[r]]
			if !ok {
				n = Undefined
			}
			out[i] = n
		}
	}
	return out, nil
}

// Compare gives Ident, Similar or Unequal.
func (g *Group) Compare(other *Group) Comparison {
	if g.Size() != other.Size() {
		return Unequal
	}
	result := Ident
	in := other.index()
	for i := range g.Size() {
		switch at, ok := in[g.ranks[i]]; {
		case !ok:
			return Unequal
		case at != i:
			result = Similar
		}
	}
	return result
}

func (g *Group) noRank(op string, r int) error {
	if g.Size() == 0 {
		return errorf(ErrRank, op, "there is no rank %s: the group is empty", rankText(r))
	}
	return errorf(ErrRank, op, "there is no rank %s: the group has ranks 0 to %d", rankText(r), g.Size()-1)
}

package mpi

import "slices"

// Group is an immutable ordered set of ranks of the world. Within the group, they are numbered 0 to Size−1.
// Groups from different worlds must not be mixed.
type Group struct {
	ranks []int // ranks of the world
	self  int   // the calling rank's number in the world
}

// Comparison is the result of comparing two groups or communicators.
type Comparison int

// The results of Compare.
const (
	// Ident means the same ranks in the same order. For communicators, it means the same communicator.
	Ident Comparison = iota
	// Congruent means different communicators with the same ranks in the same order.
	Congruent
	// Similar means the same ranks in another order.
	Similar
	// Unequal means different ranks.
	Unequal
)

// String returns the standard's name of the result.
func (c Comparison) String() string {
	names := [...]string{"MPI_IDENT", "MPI_CONGRUENT", "MPI_SIMILAR", "MPI_UNEQUAL"}
	if c < 0 || int(c) >= len(names) {
		return "MPI_UNDEFINED"
	}
	return names[c]
}

// Size returns the number of ranks.
func (g *Group) Size() int {
	if g == nil {
		return 0
	}
	return len(g.ranks)
}

// Rank returns the calling rank's number in the group, or Undefined if it is not a member.
func (g *Group) Rank() int {
	if g == nil {
		return Undefined
	}
	if i := slices.Index(g.ranks, g.self); i >= 0 {
		return i
	}
	return Undefined
}

// rankIndex maps ranks of the world to numbers in the group.
func (g *Group) rankIndex() map[int]int {
	if g == nil {
		return nil
	}
	m := make(map[int]int, len(g.ranks))
	for i, r := range g.ranks {
		m[r] = i
	}
	return m
}

// Translate returns, for each of the given ranks of g, its number in other. The number is Undefined for a rank
// that is not in other, and ProcNull for ProcNull.
func (g *Group) Translate(ranks []int, other *Group) ([]int, error) {
	in := other.rankIndex()
	out := make([]int, len(ranks))
	for i, r := range ranks {
		switch {
		case r == ProcNull:
			out[i] = ProcNull
		case r < 0 || r >= g.Size():
			return nil, g.rankError("Group.Translate", r)
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

// Compare returns Ident, Similar or Unequal.
func (g *Group) Compare(other *Group) Comparison {
	if g.Size() != other.Size() {
		return Unequal
	}
	result := Ident
	in := other.rankIndex()
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

func (g *Group) rankError(op string, r int) error {
	if g.Size() == 0 {
		return errorf(ErrRank, op, "there is no rank %s: the group is empty", rankText(r))
	}
	return errorf(ErrRank, op, "there is no rank %s: the group has ranks 0 to %d", rankText(r), g.Size()-1)
}

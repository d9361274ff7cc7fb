package mpi

import (
	"math"
	"slices"
)

// Union returns a group of the ranks of g, followed by the ranks of other that are not in g.
func (g *Group) Union(other *Group) *Group {
	ranks := append(slices.Clone(g.members()), other.without(g)...)
	return &Group{ranks: ranks, self: callingRank(g, other)}
}

// Intersection returns a group of the ranks of g that are in other, in g's order.
func (g *Group) Intersection(other *Group) *Group {
	return &Group{ranks: g.without(g.Difference(other)), self: callingRank(g, other)}
}

// Difference returns a group of the ranks of g that are not in other, in g's order.
func (g *Group) Difference(other *Group) *Group {
	return &Group{ranks: g.without(other), self: callingRank(g, other)}
}

// without returns the ranks of g that are not in other.
func (g *Group) without(other *Group) []int {
	in := other.rankIndex()
	var ranks []int
	for _, r := range g.members() {
		if _, ok := in[r]; !ok {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

func (g *Group) members() []int {
	if g == nil {
		return nil
	}
	return g.ranks
}

// callingRank returns the calling rank, which every non-nil group stores.
func callingRank(groups ...*Group) int {
	for _, g := range groups {
		if g != nil {
			return g.self
		}
	}
	return Undefined
}

// Incl returns a group of the given ranks of g, in the given order. They must be distinct.
func (g *Group) Incl(ranks ...int) (*Group, error) {
	return g.incl("Group.Incl", ranks)
}

// Excl returns a group of the ranks of g without the given ones, in g's order. The given ranks must be distinct.
func (g *Group) Excl(ranks ...int) (*Group, error) {
	return g.excl("Group.Excl", ranks)
}

// Range is the sequence of ranks First, First+Stride, First+2·Stride and so on, up to Last. Stride may be negative, but
// not 0.
type Range struct{ First, Last, Stride int }

// RangeIncl is Incl with the concatenated ranges.
func (g *Group) RangeIncl(ranges ...Range) (*Group, error) {
	const op = "Group.RangeIncl"
	ranks, err := g.expand(op, ranges)
	if err != nil {
		return nil, err
	}
	return g.incl(op, ranks)
}

// RangeExcl is like Excl, for the ranks in all of the given ranges.
func (g *Group) RangeExcl(ranges ...Range) (*Group, error) {
	const op = "Group.RangeExcl"
	ranks, err := g.expand(op, ranges)
	if err != nil {
		return nil, err
	}
	return g.excl(op, ranks)
}

// incl implements Incl and RangeIncl. op is the name of the call in errors.
func (g *Group) incl(op string, ranks []int) (*Group, error) {
	if _, err := g.checkDistinct(op, ranks); err != nil {
		return nil, err
	}
	out := &Group{self: callingRank(g), ranks: make([]int, len(ranks))}
	for i, r := range ranks {
		out.ranks[i] = g.ranks[r]
	}
	return out, nil
}

// excl implements Excl and RangeExcl.
func (g *Group) excl(op string, ranks []int) (*Group, error) {
	marked, err := g.checkDistinct(op, ranks)
	if err != nil {
		return nil, err
	}
	out := &Group{self: callingRank(g)}
	for i, m := range marked {
		if !m {
			out.ranks = append(out.ranks, g.ranks[i])
		}
	}
	return out, nil
}

// checkDistinct returns an error unless the ranks are distinct and in the group. It returns a slice in which the given
// ranks are marked.
func (g *Group) checkDistinct(op string, ranks []int) ([]bool, error) {
	marked := make([]bool, g.Size())
	for _, r := range ranks {
		if r < 0 || r >= len(marked) {
			return nil, g.rankError(op, r)
		}
		if marked[r] {
			return nil, errorf(ErrRank, op, "rank %d is listed twice", r)
		}
		marked[r] = true
	}
	return marked, nil
}

// expand lists the ranks in ranges, in order and with duplicates, which incl and excl reject.
func (g *Group) expand(op string, ranges []Range) ([]int, error) {
	var ranks []int
	for _, r := range ranges {
		if r.Stride == 0 {
			return nil, errorf(ErrArg, op, "the stride of range %d to %d is 0", r.First, r.Last)
		}
		if r.First < 0 || r.First >= g.Size() {
			return nil, g.rankError(op, r.First)
		}
		if r.Last < math.MinInt32 || r.Last > math.MaxInt32 {
			return nil, g.rankError(op, r.Last)
		}
		if r.First != r.Last && (r.First < r.Last) != (r.Stride > 0) {
			continue // empty according to the standard's formula
		}
		for i := 0; i <= (r.Last-r.First)/r.Stride; i++ {
			next := r.First + i*r.Stride
			if next < 0 || next >= g.Size() {
				return nil, g.rankError(op, next)
			}
			ranks = append(ranks, next)
		}
	}
	return ranks, nil
}

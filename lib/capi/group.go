package capi

import (
	"github.com/zrlmpi/zrlmpid/mpi"
)

// group is a group of ranks. If it comes from a session, it refers to the send buffer of that session.
type group struct {
	*mpi.Group
	sessionBuf *mpi.SendBuffer
}

var _ = add(map[string]implementation{
	"Group_size":            func(a *args) { a.setInt(1, a.group(0).Size()) },
	"Group_rank":            func(a *args) { a.setInt(1, a.abiRank(a.group(0).Rank())) },
	"Group_translate_ranks": (*args).groupTranslate,
	"Group_compare":         func(a *args) { a.setComparison(2, a.group(0).Compare(a.group(1))) },
	"Group_union":           func(a *args) { a.groupOf((*mpi.Group).Union) },
	"Group_intersection":    func(a *args) { a.groupOf((*mpi.Group).Intersection) },
	"Group_difference":      func(a *args) { a.groupOf((*mpi.Group).Difference) },
	"Group_incl":            func(a *args) { a.groupPart((*mpi.Group).Incl) },
	"Group_excl":            func(a *args) { a.groupPart((*mpi.Group).Excl) },
	"Group_range_incl":      func(a *args) { a.groupRanges((*mpi.Group).RangeIncl) },
	"Group_range_excl":      func(a *args) { a.groupRanges((*mpi.Group).RangeExcl) },
	"Group_free":            (*args).groupFree,
})

func (l *Library) defineGroups() {
	l.groups.define(l.abi.handle(kindGroup, l.abi.constants["GROUP_EMPTY"]), &group{})
}

// newGroup stores the handle of a group. An empty group has the predefined handle, with which programs compare it.
func (a *args) newGroup(i int, g *mpi.Group) {
	if g.Size() == 0 {
		a.setHandle(i, a.lib.abi.handle(kindGroup, a.lib.abi.constants["GROUP_EMPTY"]))
		return
	}
	made, _ := newObject(a, a.lib.groups, i)
	made.Group, made.sessionBuf = g, a.inheritedBuffer
}

// abiRank converts a rank of package mpi, which may be Undefined or ProcNull, to a value of the ABI.
func (a *args) abiRank(r int) int {
	switch r {
	case mpi.Undefined:
		return a.lib.abi.undefined
	case mpi.ProcNull:
		return a.lib.abi.procNull
	}
	return r
}

// groupTranslate implements MPI_Group_translate_ranks(group1, n, ranks1, group2, ranks2).
func (a *args) groupTranslate() {
	g := a.group(0)
	ranks := a.countedInts(1, 2)
	other := a.group(3)
	for i, r := range ranks {
		switch {
		case r == a.lib.abi.procNull:
			ranks[i] = mpi.ProcNull
		case r < 0:
			ranks[i] = mpi.Foreign.OutOfRange(r)
		}
	}
	out := must(g.Translate(ranks, other))
	for i, r := range out {
		out[i] = a.abiRank(r)
	}
	a.setInts(4, out)
}

func (a *args) groupOf(of func(g, h *mpi.Group) *mpi.Group) {
	a.newGroup(2, of(a.group(0), a.group(1)))
}

func (a *args) groupPart(of func(g *mpi.Group, ranks ...int) (*mpi.Group, error)) {
	g := a.group(0)
	ranks := a.countedInts(1, 2)
	a.newGroup(3, must(of(g, ranks...)))
}

// groupRanges implements MPI_Group_range_incl(group, n, ranges, newgroup) and MPI_Group_range_excl. A range is an array
// of three ints: first, last and stride.
func (a *args) groupRanges(of func(g *mpi.Group, ranges ...mpi.Range) (*mpi.Group, error)) {
	g := a.group(0)
	n := a.arrayLen(1)
	triplets := a.intArray(2, 3*n)
	ranges := make([]mpi.Range, n)
	for i := range ranges {
		ranges[i] = mpi.Range{First: triplets[3*i], Last: triplets[3*i+1], Stride: triplets[3*i+2]}
	}
	a.newGroup(3, must(of(g, ranges...)))
}

func (a *args) groupFree() {
	h := a.handleIn(0)
	findOrFail(a.lib.groups, h, mpi.ErrGroup)
	removeObject(a, a.lib.groups, 0, h)
}

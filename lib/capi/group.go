package capi

import (
	"github.com/zrlmpi/zrlmpid/mpi"
)

// group is a group, and the send buffer of the session that it comes from, or nil.
type group struct {
	*mpi.Group
	session *mpi.SendBuffer
}

var _ = add(map[string]implementation{
	"Group_size":            (*args).groupSize,
	"Group_rank":            (*args).groupRank,
	"Group_translate_ranks": (*args).groupTranslate,
	"Group_compare":         (*args).groupCompare,
	"Group_union":           func(a *args) error { return a.groupOf((*mpi.Group).Union) },
	"Group_intersection":    func(a *args) error { return a.groupOf((*mpi.Group).Intersection) },
	"Group_difference":      func(a *args) error { return a.groupOf((*mpi.Group).Difference) },
	"Group_incl":            func(a *args) error { return a.groupPart((*mpi.Group).Incl) },
	"Group_excl":            func(a *args) error { return a.groupPart((*mpi.Group).Excl) },
	"Group_range_incl":      func(a *args) error { return a.groupRanges((*mpi.Group).RangeIncl) },
	"Group_range_excl":      func(a *args) error { return a.groupRanges((*mpi.Group).RangeExcl) },
	"Group_free":            (*args).groupFree,
})

func (l *Library) nameGroups() {
	l.groups.name(l.abi.handle(kindGroup, l.abi.constants["GROUP_EMPTY"]), &group{})
}

func (a *args) newGroup(i int, g *mpi.Group) error {
	if g.Size() == 0 {
		return a.setHandle(i, a.l.abi.handle(kindGroup, a.l.abi.constants["GROUP_EMPTY"]))
	}
	made, _, err := give(a, a.l.groups, i)
	if err != nil {
		return err
	}
	made.Group, made.session = g, a.inherited
	return nil
}

func (a *args) groupSize() error {
	g, err := a.group(0)
	if err != nil {
		return err
	}
	return a.setInt(1, g.Size())
}

// rank is a rank or MPI_UNDEFINED.
func (a *args) rank(r int) int {
	switch r {
	case mpi.Undefined:
		return a.l.abi.undefined
	case mpi.ProcNull:
		return a.l.abi.procNull
	}
	return r
}

func (a *args) groupRank() error {
	g, err := a.group(0)
	if err != nil {
		return err
	}
	return a.setInt(1, a.rank(g.Rank()))
}

func (a *args) groupTranslate() error {
	g, err := a.group(0)
	if err != nil {
		return err
	}
	ranks, err := a.countedInts(1, 2)
	if err != nil {
		return err
	}
	other, err := a.group(3)
	if err != nil {
		return err
	}
	for i, r := range ranks {
		switch {
		case r == a.l.abi.procNull:
			ranks[i] = mpi.ProcNull
		case r < 0:
			ranks[i] = mpi.Foreign.Outside(r)
		}
	}
	out, err := g.Translate(ranks, other)
	if err != nil {
		return err
	}
	for i, r := range out {
		out[i] = a.rank(r)
	}
	return a.setInts(4, out)
}

func (a *args) groupCompare() error {
	g, err := a.group(0)
	if err != nil {
		return err
	}
	h, err := a.group(1)
	if err != nil {
		return err
	}
	return a.comparison(2, g.Compare(h))
}

func (a *args) groupOf(of func(g, h *mpi.Group) *mpi.Group) error {
	g, err := a.group(0)
	if err != nil {
		return err
	}
	h, err := a.group(1)
	if err != nil {
		return err
	}
	return a.newGroup(2, of(g, h))
}

func (a *args) groupPart(of func(g *mpi.Group, ranks ...int) (*mpi.Group, error)) error {
	g, err := a.group(0)
	if err != nil {
		return err
	}
	ranks, err := a.countedInts(1, 2)
	if err != nil {
		return err
	}
	made, err := of(g, ranks...)
	if err != nil {
		return err
	}
	return a.newGroup(3, made)
}

func (a *args) groupRanges(of func(g *mpi.Group, ranges ...mpi.Range) (*mpi.Group, error)) error {
	g, err := a.group(0)
	if err != nil {
		return err
	}
	n, err := a.number(1)
	if err != nil {
		return err
	}
	triplets, err := a.ints(2, 3*n)
	if err != nil {
		return err
	}
	ranges := make([]mpi.Range, n)
	for i := range ranges {
		ranges[i] = mpi.Range{First: triplets[3*i], Last: triplets[3*i+1], Stride: triplets[3*i+2]}
	}
	made, err := of(g, ranges...)
	if err != nil {
		return err
	}
	return a.newGroup(3, made)
}

func (a *args) groupFree() error {
	p, err := a.where(0)
	if err != nil {
		return err
	}
	h := a.l.handleAt(p, 0)
	if a.l.groups.get(h) == nil {
		return errorf(mpi.ErrGroup, "%#x is no group, or has been freed", h)
	}
	a.l.groups.remove(h)
	a.l.setHandleAt(p, 0, a.l.abi.null[kindGroup])
	return nil
}

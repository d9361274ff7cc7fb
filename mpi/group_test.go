package mpi_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/mpi/mpitest"
)

// worldGroup returns the group of rank 0 in a world of n ranks.
func worldGroup(t *testing.T, n int) *mpi.Group {
	t.Helper()
	c, err := mpi.New(mpitest.World(mpitest.Options{})(t, n)[0])
	if err != nil {
		t.Fatal(err)
	}
	return c.Group()
}

// ranksOf returns the ranks of a group, translated to the world.
func ranksOf(t *testing.T, g, world *mpi.Group) []int {
	t.Helper()
	all := make([]int, g.Size())
	for i := range all {
		all[i] = i
	}
	ranks, err := g.Translate(all, world)
	if err != nil {
		t.Fatal(err)
	}
	return ranks
}

// TestGroupAlgebra compares the results with naive set operations.
func TestGroupAlgebra(t *testing.T) {
	const n = 9
	world := worldGroup(t, n)
	random := rand.New(rand.NewPCG(5, 6))
	draw := func() (*mpi.Group, []int) {
		ranks := random.Perm(n)[:random.IntN(n+1)]
		g, err := world.Incl(ranks...)
		if err != nil {
			t.Fatal(err)
		}
		return g, ranks
	}
	filter := func(ranks []int, keep func(int) bool) []int {
		var out []int
		for _, r := range ranks {
			if keep(r) {
				out = append(out, r)
			}
		}
		return out
	}
	for range 500 {
		a, as := draw()
		b, bs := draw()
		inA := func(r int) bool { return slices.Contains(as, r) }
		inB := func(r int) bool { return slices.Contains(bs, r) }
		not := func(f func(int) bool) func(int) bool { return func(r int) bool { return !f(r) } }
		for name, c := range map[string]struct {
			got  *mpi.Group
			want []int
		}{
			"union":        {a.Union(b), append(slices.Clone(as), filter(bs, not(inA))...)},
			"intersection": {a.Intersection(b), filter(as, inB)},
			"difference":   {a.Difference(b), filter(as, not(inB))},
		} {
			if got := ranksOf(t, c.got, world); !slices.Equal(got, c.want) {
				t.Fatalf("the %s of %v and %v is %v, not %v", name, as, bs, got, c.want)
			}
			want := slices.Index(c.want, 0)
			if want < 0 {
				want = mpi.Undefined
			}
			if c.got.Rank() != want {
				t.Fatalf("rank 0 of the world is %d in the %s %v, not %d", c.got.Rank(), name, c.want, want)
			}
		}
		excluded, err := world.Excl(as...)
		if err != nil {
			t.Fatal(err)
		}
		if got := excluded.Compare(world.Difference(a)); got != mpi.Ident {
			t.Fatalf("all but %v compares as %v", as, got)
		}
		want := mpi.Unequal
		if slices.Equal(as, bs) {
			want = mpi.Ident
		} else if slices.Equal(slices.Sorted(slices.Values(as)), slices.Sorted(slices.Values(bs))) {
			want = mpi.Similar
		}
		if got := a.Compare(b); got != want {
			t.Fatalf("%v and %v compare as %v, not %v", as, bs, got, want)
		}
		turned := slices.Clone(as)
		slices.Reverse(turned)
		c, err := world.Incl(turned...)
		if err != nil {
			t.Fatal(err)
		}
		if got := a.Compare(c); len(as) > 1 && got != mpi.Similar {
			t.Fatalf("%v and %v compare as %v", as, turned, got)
		}
	}
}

func TestGroupRanges(t *testing.T) {
	world := worldGroup(t, 10)
	for _, c := range []struct {
		ranges []mpi.Range
		want   []int
		class  mpi.Class
	}{
		{nil, nil, mpi.Success},
		{[]mpi.Range{{0, 9, 3}}, []int{0, 3, 6, 9}, mpi.Success},
		{[]mpi.Range{{0, 10, 3}}, []int{0, 3, 6, 9}, mpi.Success},
		{[]mpi.Range{{8, 1, -3}, {1, 1, 5}}, []int{8, 5, 2, 1}, mpi.Success},
		{[]mpi.Range{{5, 4, 1}, {4, 5, -1}}, nil, mpi.Success},
		{[]mpi.Range{{5, 6, math.MaxInt}}, []int{5}, mpi.Success},
		{[]mpi.Range{{0, 9, 0}}, nil, mpi.ErrArg},
		{[]mpi.Range{{0, 10, 1}}, nil, mpi.ErrRank},
		{[]mpi.Range{{-1, 3, 1}}, nil, mpi.ErrRank},
		{[]mpi.Range{{3, -1, -1}}, nil, mpi.ErrRank},
		{[]mpi.Range{{0, math.MaxInt, 1}}, nil, mpi.ErrRank},
		{[]mpi.Range{{0, math.MinInt, -1}}, nil, mpi.ErrRank},
		{[]mpi.Range{{0, 3, 1}, {3, 3, 1}}, nil, mpi.ErrRank},
	} {
		g, err := world.RangeIncl(c.ranges...)
		if got := mpi.ClassOf(err); got != c.class {
			t.Errorf("RangeIncl(%v): %v", c.ranges, err)
			continue
		}
		without, err := world.RangeExcl(c.ranges...)
		if got := mpi.ClassOf(err); got != c.class {
			t.Errorf("RangeExcl(%v): %v", c.ranges, err)
			continue
		}
		if err != nil {
			continue
		}
		if got := ranksOf(t, g, world); !slices.Equal(got, c.want) {
			t.Errorf("RangeIncl(%v) is %v, not %v", c.ranges, got, c.want)
		}
		if got := without.Compare(world.Difference(g)); got != mpi.Ident {
			t.Errorf("RangeExcl(%v) has ranks %v", c.ranges, ranksOf(t, without, world))
		}
	}
}

func TestGroupMistakes(t *testing.T) {
	world := worldGroup(t, 3)
	for _, ranks := range [][]int{{3}, {-1}, {1, 1}, {mpi.Undefined}} {
		if _, err := world.Incl(ranks...); !errors.Is(err, mpi.ErrRank) {
			t.Errorf("Incl(%v): %v", ranks, err)
		}
		if _, err := world.Excl(ranks...); !errors.Is(err, mpi.ErrRank) {
			t.Errorf("Excl(%v): %v", ranks, err)
		}
	}
	if _, err := world.Translate([]int{3}, world); !errors.Is(err, mpi.ErrRank) {
		t.Errorf("Translate: %v", err)
	}
	some, err := world.Incl(2, 0)
	if err != nil {
		t.Fatal(err)
	}
	got, err := world.Translate([]int{0, 1, 2, mpi.ProcNull}, some)
	if want := []int{1, mpi.Undefined, 0, mpi.ProcNull}; err != nil || !slices.Equal(got, want) {
		t.Errorf("Translate gives %v and %v, not %v", got, err, want)
	}
	var none *mpi.Group // like the group of a nil communicator
	if none.Size() != 0 || none.Rank() != mpi.Undefined || none.Compare(world) != mpi.Unequal {
		t.Error("a nil group is not empty")
	}
	if none.Union(some).Compare(some) != mpi.Ident || some.Intersection(none).Size() != 0 {
		t.Error("a nil group is not the empty set")
	}
	if _, err := none.Incl(0); !errors.Is(err, mpi.ErrRank) {
		t.Errorf("Incl: %v", err)
	}
}

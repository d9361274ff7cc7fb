package mpi_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/mpi/job"
)

// TestCart compares coordinates, shifts and subgrids with their definitions.
func TestCart(t *testing.T) {
	for _, x := range []struct {
		dims    []int
		periods []bool
	}{
		{[]int{2, 3}, []bool{false, true}},
		{[]int{3, 1, 2}, []bool{true, true, false}},
		{[]int{7}, []bool{true}},
		{[]int{2, 2}, []bool{true, false}},
		{nil, nil},
	} {
		t.Run(fmt.Sprint(x.dims), func(t *testing.T) {
			n := 1
			for _, d := range x.dims {
				n *= d
			}
			err := job.Run(t.Context(), 7, func(ctx context.Context, world *mpi.Comm) error {
				mapped, err := world.CartMap(x.dims, x.periods)
				if err != nil {
					return err
				}
				grid, err := world.CartCreate(ctx, x.dims, x.periods, true)
				if err != nil || grid.Rank() != mapped {
					return fmt.Errorf("rank %d, mapped to %d: %w", grid.Rank(), mapped, err)
				}
				if (grid == nil) != (world.Rank() >= n) {
					t.Errorf("rank %d has %v", world.Rank(), grid)
				}
				if grid == nil {
					if grid.Topology() != mpi.NoTopology {
						t.Error("there is a topology")
					}
					return nil
				}
				if grid.Size() != n || grid.Topology() != mpi.Cartesian || grid.Topology().String() != "MPI_CART" ||
					world.Topology() != mpi.NoTopology {
					t.Errorf("%d ranks, %v, %v", grid.Size(), grid.Topology(), world.Topology())
				}
				twin, err := grid.Dup(ctx)
				if err != nil {
					return err
				}
				return errors.Join(checkGrid(ctx, t, grid, x.dims, x.periods),
					checkGrid(ctx, t, twin, x.dims, x.periods))
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func checkGrid(ctx context.Context, t *testing.T, grid *mpi.Comm, dims []int, periods []bool) error {
	got, rings, at, err := grid.Cart()
	if err != nil || !slices.Equal(got, dims) || !slices.Equal(rings, periods) {
		t.Errorf("%v, %v, %v", got, rings, err)
	}
	var coords [][]int // of all ranks, in row-major order
	var fill func(before []int)
	fill = func(before []int) {
		if len(before) == len(dims) {
			coords = append(coords, slices.Clone(before))
			return
		}
		for i := range dims[len(before)] {
			fill(append(before, i))
		}
	}
	fill(nil)
	for r, want := range coords {
		got, err := grid.CartCoords(r)
		if err != nil || !slices.Equal(got, want) || r == grid.Rank() && !slices.Equal(at, want) {
			t.Errorf("rank %d is at %v, %v, not %v", r, got, err, want)
		}
		turned := slices.Clone(want)
		for i := range turned {
			if periods[i] {
				turned[i] += dims[i] * (2 - 4*(r%2))
			}
		}
		if got, err := grid.CartRank(turned); got != r || err != nil {
			t.Errorf("at %v is rank %d, %v, not %d", turned, got, err, r)
		}
	}
	for d, size := range dims {
		for _, by := range []int{-size - 1, -2, -1, 0, 1, 2, size, math.MaxInt, math.MinInt} {
			find := func(sign int) int {
				to := slices.Clone(at)
				if periods[d] {
					to[d] = ((to[d]+sign*(by%size))%size + size) % size
				} else if by > size || by < -size {
					return mpi.ProcNull
				} else {
					to[d] += sign * by
				}
				if i := slices.IndexFunc(coords, func(c []int) bool { return slices.Equal(c, to) }); i >= 0 {
					return i
				}
				return mpi.ProcNull
			}
			source, dest, err := grid.CartShift(d, by)
			if source != find(-1) || dest != find(1) || err != nil {
				t.Errorf("rank %d shifts %d by %d: %d, %d, %v, not %d, %d", grid.Rank(), d, by, source, dest, err,
					find(-1), find(1))
			}
		}
	}
	for set := range 1 << len(dims) {
		remain := make([]bool, len(dims))
		var left, here []int
		for i := range remain {
			if remain[i] = set>>i&1 == 1; remain[i] {
				left, here = append(left, dims[i]), append(here, at[i])
			}
		}
		part, err := grid.CartSub(ctx, remain)
		if err != nil {
			return err
		}
		if got, _, coords, err := part.Cart(); err != nil || !slices.Equal(got, left) || !slices.Equal(coords, here) {
			t.Errorf("the part %v is %v, at %v, %v", remain, got, coords, err)
		}
		// The members have the same fixed coordinates as this rank.
		ranks, err := part.Group().Translate([]int{0, part.Size() - 1}, grid.Group())
		if err != nil {
			return err
		}
		for _, r := range ranks {
			for i := range dims {
				if !remain[i] && coords[r][i] != at[i] {
					t.Errorf("rank %d at %v is in the part %v of %v", r, coords[r], remain, at)
				}
			}
		}
	}
	return nil
}

func TestTopologyMistakes(t *testing.T) {
	err := job.Run(t.Context(), 4, func(ctx context.Context, world *mpi.Comm) error {
		grid, err := world.CartCreate(ctx, []int{2, 2}, []bool{true, false}, false)
		if err != nil {
			return err
		}
		create := func(dims []int, periods []bool) error {
			_, err := world.CartCreate(ctx, dims, periods, false)
			_, of := world.CartMap(dims, periods)
			if mpi.ClassOf(err) != mpi.ClassOf(of) {
				t.Error(err, of)
			}
			return err
		}
		graph := func(index, edges []int) error {
			_, err := world.GraphCreate(ctx, index, edges, false)
			_, of := world.GraphMap(index, edges)
			if mpi.ClassOf(err) != mpi.ClassOf(of) {
				t.Error(err, of)
			}
			return err
		}
		adjacent := func(n mpi.Neighbors) error {
			_, err := world.DistGraphCreateAdjacent(ctx, n, false)
			return err
		}
		dist := func(sources, degrees, destinations, weights []int) error {
			_, err := world.DistGraphCreate(ctx, sources, degrees, destinations, weights, false)
			return err
		}
		_, _, _, cart := world.Cart()
		_, rank := grid.CartRank([]int{5, 2})
		_, few := grid.CartRank([]int{5})
		_, coords := grid.CartCoords(4)
		_, noCoords := world.CartCoords(0)
		_, noRank := world.CartRank(nil)
		_, _, shift := grid.CartShift(2, 1)
		_, _, noShift := world.CartShift(0, 1)
		_, sub := grid.CartSub(ctx, []bool{true})
		_, noSub := world.CartSub(ctx, nil)
		_, _, noGraph := grid.Graph()
		_, noNeighbors := grid.GraphNeighbors(0)
		_, noDist := grid.DistGraphNeighbors()
		for i, x := range []struct {
			err   error
			class mpi.Class
		}{
			{create([]int{2}, nil), mpi.ErrArg},
			{create([]int{2, 0}, make([]bool, 2)), mpi.ErrDims},
			{create([]int{-2, -2}, make([]bool, 2)), mpi.ErrDims},
			{create([]int{5}, make([]bool, 1)), mpi.ErrDims},
			{create([]int{2, math.MaxInt}, make([]bool, 2)), mpi.ErrDims},
			{cart, mpi.ErrTopology}, {noCoords, mpi.ErrTopology}, {noRank, mpi.ErrTopology}, {noShift, mpi.ErrTopology},
			{noSub, mpi.ErrTopology},
			{rank, mpi.ErrArg}, {few, mpi.ErrDims}, {coords, mpi.ErrRank}, {shift, mpi.ErrDims}, {sub, mpi.ErrDims},
			{noGraph, mpi.ErrTopology}, {noNeighbors, mpi.ErrTopology}, {noDist, mpi.ErrTopology},
			{graph(make([]int, 5), nil), mpi.ErrTopology},
			{graph([]int{1, 0}, []int{0}), mpi.ErrTopology},
			{graph([]int{1, 3}, []int{0, 1}), mpi.ErrTopology},
			{graph([]int{1, 1}, []int{0, 1}), mpi.ErrTopology},
			{graph([]int{-1, 1}, []int{0}), mpi.ErrTopology},
			{graph([]int{1, 2}, []int{0, 2}), mpi.ErrTopology},
			{graph([]int{1, 2}, []int{0, -1}), mpi.ErrTopology},
			{adjacent(mpi.Neighbors{Sources: []int{4}}), mpi.ErrRank},
			{adjacent(mpi.Neighbors{Destinations: []int{mpi.ProcNull}}), mpi.ErrRank},
			{adjacent(mpi.Neighbors{Sources: []int{1}, SourceWeights: []int{1}}), mpi.ErrArg},
			{adjacent(mpi.Neighbors{Sources: []int{1}, SourceWeights: []int{1, 2}, DestinationWeights: []int{}}),
				mpi.ErrArg},
			{adjacent(mpi.Neighbors{Sources: []int{1}, SourceWeights: []int{-1}, DestinationWeights: []int{}}),
				mpi.ErrArg},
			{dist([]int{1}, nil, nil, nil), mpi.ErrArg},
			{dist([]int{1}, []int{2}, []int{1}, nil), mpi.ErrArg},
			{dist([]int{1}, []int{-1}, []int{1}, nil), mpi.ErrArg},
			{dist([]int{1}, []int{0}, []int{1}, nil), mpi.ErrArg},
			{dist([]int{1}, []int{1}, []int{1}, []int{}), mpi.ErrArg},
			{dist([]int{4}, []int{1}, []int{1}, nil), mpi.ErrRank},
			{dist([]int{1}, []int{1}, []int{4}, nil), mpi.ErrRank},
		} {
			if mpi.ClassOf(x.err) != x.class {
				t.Errorf("%d: %v, not %v", i, x.err, x.class)
			}
		}
		if _, err := (*mpi.Comm)(nil).CartCreate(ctx, nil, nil, false); mpi.ClassOf(err) != mpi.ErrComm {
			t.Error(err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if s := mpi.Topology(9).String(); s != "MPI_UNDEFINED" {
		t.Error(s)
	}
}

// TestGraph uses the example in the standard, and a duplicate of its communicator.
func TestGraph(t *testing.T) {
	index, edges := []int{2, 3, 4, 6}, []int{1, 3, 0, 3, 0, 2}
	err := job.Run(t.Context(), 5, func(ctx context.Context, world *mpi.Comm) error {
		if g, err := world.GraphCreate(ctx, nil, nil, true); g != nil || err != nil {
			t.Errorf("of no ranks: %v, %v", g, err)
		}
		mapped, err := world.GraphMap(index, edges)
		if err != nil {
			return err
		}
		g, err := world.GraphCreate(ctx, index, edges, true)
		if g.Rank() != mapped || err != nil || g == nil {
			if world.Rank() != 4 {
				t.Errorf("rank %d, mapped to %d, %v", g.Rank(), mapped, err)
			}
			return err
		}
		twin, err := g.Dup(ctx)
		if err != nil {
			return err
		}
		gotIndex, gotEdges, err := twin.Graph()
		if err != nil || !slices.Equal(gotIndex, index) || !slices.Equal(gotEdges, edges) ||
			twin.Topology() != mpi.Graph {
			t.Errorf("%v, %v, %v, %v", gotIndex, gotEdges, twin.Topology(), err)
		}
		for r, want := range [][]int{{1, 3}, {0}, {3}, {0, 2}} {
			if got, err := twin.GraphNeighbors(r); err != nil || !slices.Equal(got, want) {
				t.Errorf("rank %d has %v, %v", r, got, err)
			}
		}
		if _, err := twin.GraphNeighbors(4); mpi.ClassOf(err) != mpi.ErrRank {
			t.Error(err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestDistGraph uses random graphs. First each rank passes edges of any ranks, and then only its own.
func TestDistGraph(t *testing.T) {
	const n = 5
	for seed := range uint64(8) {
		random := rand.New(rand.NewPCG(seed, 1))
		type edge struct{ from, to, weight int }
		given := make([][]edge, n) // by rank
		for range random.IntN(40) {
			r := random.IntN(n)
			given[r] = append(given[r], edge{random.IntN(n), random.IntN(n), random.IntN(100)})
		}
		weighted := seed%2 == 0
		err := job.Run(t.Context(), n, func(ctx context.Context, world *mpi.Comm) error {
			var sources, degrees, destinations, weights []int
			if weighted {
				weights = []int{}
			}
			for _, e := range given[world.Rank()] {
				if last := len(sources) - 1; last >= 0 && sources[last] == e.from {
					degrees[last]++
				} else {
					sources, degrees = append(sources, e.from), append(degrees, 1)
				}
				destinations = append(destinations, e.to)
				if weighted {
					weights = append(weights, e.weight)
				}
			}
			g, err := world.DistGraphCreate(ctx, sources, degrees, destinations, weights, false)
			if err != nil {
				return err
			}
			var want mpi.Neighbors
			if weighted {
				want.SourceWeights, want.DestinationWeights = []int{}, []int{}
			}
			for _, e := range slices.Concat(given...) {
				if e.to == world.Rank() {
					want.Sources, want.SourceWeights = append(want.Sources, e.from),
						append(want.SourceWeights, e.weight)
				}
				if e.from == world.Rank() {
					want.Destinations, want.DestinationWeights = append(want.Destinations, e.to),
						append(want.DestinationWeights, e.weight)
				}
			}
			if !weighted {
				want.SourceWeights, want.DestinationWeights = nil, nil
			}
			same := func(c *mpi.Comm) {
				got, err := c.DistGraphNeighbors()
				if fmt.Sprintf("%#v", got.SourceWeights == nil) != fmt.Sprintf("%#v", want.SourceWeights == nil) ||
					fmt.Sprint(got) != fmt.Sprint(want) || err != nil || c.Topology() != mpi.DistGraph {
					t.Errorf("rank %d has %v, %v, %v, not %v", c.Rank(), got, c.Topology(), err, want)
				}
			}
			same(g)
			twin, err := g.Dup(ctx)
			if err != nil {
				return err
			}
			same(twin)
			if g, err = world.DistGraphCreateAdjacent(ctx, want, true); err != nil {
				return err
			}
			same(g)
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

package mpi_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/mpi/datatype"
	"github.com/zrlmpi/zrlmpid/mpi/job"
)

// checkNeighbors compares each call with the result computed from the edges. destinations is the number of outgoing
// edges of this rank. Source i is rank from[i], or ProcNull, and sends its block at[i] to this rank.
func checkNeighbors(ctx context.Context, t *testing.T, c *mpi.Comm, destinations int, from, at []int) {
	of := mpi.TypeOf[int64]()
	done := func(r mpi.Request, err error) error {
		if err == nil {
			_, err = r.Wait(ctx)
		}
		return err
	}
	for _, gap := range []int{1, 3} {
		typ := of
		if gap > 1 {
			typ = must(datatype.Resized(of, 0, int64(gap)*8))
		}
		room := func(n int) []int64 { return slices.Repeat([]int64{-1}, n*gap) }
		fill := func(b []int64, place int, values []int64) {
			for i, v := range values {
				b[(place+i)*gap] = v
			}
		}
		buffer := func(b []int64) mpi.Buffer { return mpi.Typed(b, len(b)/gap, typ) }
		check := func(name string, err error, got, want []int64) {
			t.Helper()
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%s on rank %d: %v, %v, not %v", name, c.Rank(), got, err, want)
			}
		}
		const k = 2
		// Each rank sends the same block to all.
		mine, want := room(k), room(k*len(from))
		fill(mine, 0, data(0, c.Rank(), k))
		var counts []int
		for i, r := range from {
			counts = append(counts, k)
			if r != mpi.ProcNull {
				fill(want, i*k, data(0, r, k))
			}
		}
		got := room(k * len(from))
		check("NeighborAllgather", c.NeighborAllgather(ctx, buffer(mine), buffer(got)), got, want)
		got = room(k * len(from))
		check("IneighborAllgather", done(c.IneighborAllgather(buffer(mine), buffer(got))), got, want)
		got = room(k * len(from))
		check("NeighborAllgatherv", c.NeighborAllgatherv(ctx, buffer(mine), mpi.TypedBlocks(got, counts, nil, typ)),
			got, want)
		got = room(k * len(from))
		check("IneighborAllgatherv", done(c.IneighborAllgatherv(buffer(mine), mpi.TypedBlocks(got, counts, nil, typ))),
			got, want)

		// A block for each destination.
		mine, want = room(k*destinations), room(k*len(from))
		fill(mine, 0, data(0, c.Rank(), k*destinations))
		for i, r := range from {
			if r != mpi.ProcNull {
				fill(want, i*k, data(0, r, (at[i]+1)*k)[at[i]*k:])
			}
		}
		got = room(k * len(from))
		check("NeighborAlltoall", c.NeighborAlltoall(ctx, buffer(mine), buffer(got)), got, want)
		got = room(k * len(from))
		check("IneighborAlltoall", done(c.IneighborAlltoall(buffer(mine), buffer(got))), got, want)

		// Block i has i+1 numbers, and there are gaps between the blocks.
		mine = room(20 * destinations)
		var sizes, displs, wanted, places []int
		for i := range destinations {
			sizes, displs = append(sizes, i+1), append(displs, 20*i)
			fill(mine, 20*i, data(i, c.Rank(), i+1))
		}
		want = room(20 * len(from))
		for i, r := range from {
			wanted, places = append(wanted, at[i]+1), append(places, 20*(len(from)-1-i))
			if r != mpi.ProcNull {
				fill(want, places[i], data(at[i], r, at[i]+1))
			}
		}
		out := mpi.TypedBlocks(mine, sizes, displs, typ)
		got = room(20 * len(from))
		check("NeighborAlltoallv", c.NeighborAlltoallv(ctx, out, mpi.TypedBlocks(got, wanted, places, typ)), got, want)
		got = room(20 * len(from))
		check("IneighborAlltoallv", done(c.IneighborAlltoallv(out, mpi.TypedBlocks(got, wanted, places, typ))), got,
			want)
	}
}

// TestNeighborsOfGrids includes rings of one and two ranks, where both neighbours are the same.
func TestNeighborsOfGrids(t *testing.T) {
	for _, x := range []struct {
		dims    []int
		periods []bool
	}{
		{[]int{6}, []bool{true}}, {[]int{6}, []bool{false}}, {[]int{1}, []bool{true}}, {[]int{2}, []bool{true}},
		{[]int{2, 3}, []bool{true, false}}, {[]int{2, 1, 2}, []bool{true, true, true}},
		{[]int{3, 2}, []bool{true, true}}, {nil, nil},
	} {
		t.Run(fmt.Sprint(x.dims, x.periods), func(t *testing.T) {
			err := job.Run(t.Context(), 6, func(ctx context.Context, world *mpi.Comm) error {
				grid, err := world.CartCreate(ctx, x.dims, x.periods, false)
				if err != nil || grid == nil {
					return err
				}
				var from, at []int
				for d := range x.dims {
					below, above, err := grid.CartShift(d, 1)
					if err != nil {
						return err
					}
					from, at = append(from, below, above), append(at, 2*d+1, 2*d) // a block sent up arrives from below
				}
				checkNeighbors(ctx, t, grid, len(from), from, at)
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// TestNeighborsOfGraphs uses random graphs, with parallel edges and edges from a rank to itself.
func TestNeighborsOfGraphs(t *testing.T) {
	const n = 4
	for seed := range uint64(6) {
		random := rand.New(rand.NewPCG(seed, 2))
		to := make([][]int, n)
		for r := range to {
			for range random.IntN(5) {
				to[r] = append(to[r], random.IntN(n))
			}
		}
		err := job.Run(t.Context(), n, func(ctx context.Context, world *mpi.Comm) error {
			me := world.Rank()
			var degrees []int
			if len(to[me]) > 0 {
				degrees = []int{len(to[me])}
			}
			g, err := world.DistGraphCreate(ctx, []int{me}[:len(degrees)], degrees, to[me], nil, false)
			if err != nil {
				return err
			}
			var from, at []int
			for r := range to {
				for i, d := range to[r] {
					if d == me {
						from, at = append(from, r), append(at, i)
					}
				}
			}
			checkNeighbors(ctx, t, g, len(to[me]), from, at)
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	// A graph that all ranks know: a ring, which is symmetric.
	err := job.Run(t.Context(), n, func(ctx context.Context, world *mpi.Comm) error {
		g, err := world.GraphCreate(ctx, []int{2, 4, 6, 8}, []int{1, 3, 0, 2, 1, 3, 2, 0}, false)
		if err != nil {
			return err
		}
		from, err := g.GraphNeighbors(g.Rank())
		if err != nil {
			return err
		}
		var at []int
		for _, r := range from {
			theirs, err := g.GraphNeighbors(r)
			if err != nil {
				return err
			}
			at = append(at, slices.Index(theirs, g.Rank()))
		}
		checkNeighbors(ctx, t, g, 2, from, at)
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestNeighborMistakes(t *testing.T) {
	err := job.Run(t.Context(), 2, func(ctx context.Context, world *mpi.Comm) error {
		ring, err := world.CartCreate(ctx, []int{2}, []bool{true}, false)
		if err != nil {
			return err
		}
		three := mpi.Typed(make([]int32, 3), 3, mpi.TypeOf[int32]())
		blocks := mpi.TypedBlocks(make([]int32, 3), []int{1, 1, 1}, nil, mpi.TypeOf[int32]())
		_, started := ring.IneighborAllgather(three, three)
		for i, x := range []struct {
			err   error
			class mpi.Class
		}{
			{world.NeighborAllgather(ctx, three, three), mpi.ErrTopology},
			{(*mpi.Comm)(nil).NeighborAlltoall(ctx, three, three), mpi.ErrComm},
			{(*mpi.Comm)(nil).NeighborAlltoallv(ctx, blocks, blocks), mpi.ErrComm},
			{started, mpi.ErrCount},
			{ring.NeighborAlltoall(ctx, three, three), mpi.ErrCount},
			{ring.NeighborAlltoallv(ctx, blocks, blocks), mpi.ErrCount},
			{ring.NeighborAllgather(ctx, mpi.InPlace, three), mpi.ErrArg},
		} {
			if mpi.ClassOf(x.err) != x.class {
				t.Errorf("%d: %v, not %v", i, x.err, x.class)
			}
		}
		// The received blocks are longer or shorter than expected.
		four, two := mpi.Typed(make([]int32, 4), 4, mpi.TypeOf[int32]()),
			mpi.Typed(make([]int32, 2), 2, mpi.TypeOf[int32]())
		if world.Rank() == 0 {
			err = ring.NeighborAlltoall(ctx, two, two)
		} else {
			err = ring.NeighborAlltoall(ctx, four, four)
		}
		if want := []mpi.Class{mpi.ErrTruncate, mpi.ErrOther}[world.Rank()]; mpi.ClassOf(err) != want {
			t.Errorf("rank %d: %v", world.Rank(), err)
		}
		// Two simultaneous calls.
		a, b := make([]int32, 2), make([]int32, 2)
		first, err := ring.IneighborAllgather(mpi.Typed([]int32{1}, 1, mpi.TypeOf[int32]()),
			mpi.Typed(a, 2, mpi.TypeOf[int32]()))
		if err != nil {
			return err
		}
		second, err := ring.IneighborAllgather(mpi.Typed([]int32{2}, 1, mpi.TypeOf[int32]()),
			mpi.Typed(b, 2, mpi.TypeOf[int32]()))
		if err != nil {
			return err
		}
		requests := []mpi.Request{second, first}
		for range requests {
			if _, _, err := mpi.Waitany(ctx, requests); err != nil {
				return err
			}
		}
		if !slices.Equal(a, []int32{1, 1}) || !slices.Equal(b, []int32{2, 2}) {
			t.Errorf("%v, %v", a, b)
		}
		if _, done, err := first.Test(); !done || err != nil {
			t.Error("a completed request is not done")
		}
		return errors.Join(mpi.Barrier(ctx, world))
	})
	if err != nil {
		t.Error(err)
	}
}

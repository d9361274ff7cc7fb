package integration_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpi"
)

// allRanks runs f on all ranks concurrently. If one rank fails, it stops all of them.
func allRanks(t *testing.T, worlds []*mpi.Comm, f func(ctx context.Context, world *mpi.Comm) error) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	all, ctx := errgroup.WithContext(ctx)
	for _, world := range worlds {
		all.Go(func() error {
			if err := f(ctx, world); err != nil {
				return fmt.Errorf("rank %d: %w", world.Rank(), err)
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
}

// upTo returns the ranks from first to end, excluding end.
func upTo(first, end int) (ranks []int) {
	for r := first; r < end; r++ {
		ranks = append(ranks, r)
	}
	return ranks
}

// library is a rank that uses package mpi's collective calls.
type library[T word] struct {
	world *mpi.Comm
	root  int
	by    mpi.Option
}

func (x *library[T]) bcast(ctx context.Context, buf []T) error {
	return mpi.Bcast(ctx, x.world, buf, x.root, x.by)
}

func (x *library[T]) scatter(ctx context.Context, send, recv []T) error {
	return mpi.Scatter(ctx, x.world, send, recv, x.root, x.by)
}

func (x *library[T]) gather(ctx context.Context, send, recv []T) error {
	return mpi.Gather(ctx, x.world, send, recv, x.root, x.by)
}

func (x *library[T]) reduce(ctx context.Context, send, recv []T) error {
	return mpi.Reduce(ctx, x.world, send, recv, mpi.Sum, x.root, x.by)
}

// meet makes collective calls between FPGAs, which know only Send and Recv, and hosts, which use the algorithm by or,
// if by is empty, the choice of their device.
func meet[T word](t *testing.T, l layout, worlds []*mpi.Comm, by string, counts ...int) {
	t.Helper()
	allRanks(t, worlds, func(ctx context.Context, world *mpi.Comm) error {
		var c collectives[T] = &unrolled[T]{world, l.root, l.groups}
		if slices.Contains(l.hosts, world.Rank()) {
			c = &library[T]{world, l.root, mpi.WithAlgorithm(by)}
		}
		return work(ctx, c, l, world.Rank(), counts...)
	})
}

// TestCollectivesMeetFPGAs checks that a host completes Bcast, Scatter, Gather and Reduce with ranks that follow the
// programs that upstream's compiler generates for FPGAs.
func TestCollectivesMeetFPGAs(t *testing.T) {
	layouts := []layout{
		{5, 4, []int{4}, nil},                               // the host is the last rank
		{5, 0, []int{1}, nil},                               // an FPGA is the root
		{6, 2, []int{2}, groupsOf([]int{0, 1, 3, 4, 5})},    // the host is in the middle
		{7, 0, []int{0}, groupsOf([]int{6, 2, 5, 1, 4, 3})}, // the cluster file has another order
		{5, 0, upTo(0, 4), nil},                             // one FPGA among hosts
		{5, 2, []int{0, 2, 3, 4}, nil},
		{5, 0, upTo(1, 5), nil}, // the FPGA is the root
	}
	for _, n := range []int{2, 3, 4, 5, 6, 7, 8, 9, 17} {
		layouts = append(layouts, layout{n, 0, []int{0}, nil})
		if n > 2 { // with one FPGA, the tree is flat
			layouts = append(layouts, layout{n, 0, []int{0}, groupsOf(upTo(1, n))})
		}
	}
	for _, l := range layouts {
		t.Run(l.String(), func(t *testing.T) {
			worlds := worldsWithFPGAs(t, l)
			meet[int32](t, l, worlds, l.algorithm(), 1, 33, 347, 2000)
			meet[float32](t, l, worlds, "", 1, 33, 347, 2000)
		})
	}
}

// TestCollectivesThroughLoss is TestCollectivesMeetFPGAs with lossy links between the host and the FPGAs. Only messages
// of a single datagram are lost, as longer ones to FPGAs must not be retransmitted.
func TestCollectivesThroughLoss(t *testing.T) {
	for _, c := range []struct {
		layout
		longest int // chosen so that a group's blocks fit into a datagram
	}{
		{layout{5, 0, []int{0}, nil}, 346},
		{layout{6, 0, []int{0}, groupsOf(upTo(1, 6))}, 86},
	} {
		t.Run(c.algorithm(), func(t *testing.T) {
			t.Parallel()
			worlds, link := lossyWorlds(t, c.layout, 1)
			meet[int32](t, c.layout, worlds, "", 1, 33, c.longest, 1, 33, c.longest)
			meet[float32](t, c.layout, worlds, "", 1, 33, c.longest, 1, 33, c.longest)
			if link.losses() == 0 {
				t.Error("no packet was lost")
			}
		})
	}
}

// TestTreeOrNothing checks that a call is refused if the tree does not support it. FPGAs built with the tree expect the
// tree, so no other algorithm may be used.
func TestTreeOrNothing(t *testing.T) {
	for name, l := range map[string]layout{
		"blocks in another order": {4, 0, []int{0}, groupsOf([]int{3, 1, 2})},
		"another root":            {4, 1, []int{0}, groupsOf([]int{1, 2, 3})},
		"two hosts":               {4, 0, []int{0, 3}, groupsOf([]int{1, 2})},
	} {
		t.Run(name, func(t *testing.T) {
			world := openRank(t, fpgaConfig(t, l, "", ""), 0, deployed)
			c := &library[int32]{world: world, root: l.root}
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			if err := c.scatter(ctx, make([]int32, 4), make([]int32, 1)); !errors.Is(err, coll.ErrCall) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestMixedCollectives checks that an FPGA among hosts takes part in all calls if an engine makes the calls for it, as
// for a stand-in that attaches to a daemon.
func TestMixedCollectives(t *testing.T) {
	for fpga := range 4 {
		t.Run(fmt.Sprint("FPGA is rank ", fpga), func(t *testing.T) {
			l := layout{ranks: 4, hosts: slices.DeleteFunc(upTo(0, 4), func(r int) bool { return r == fpga })}
			// Ranks send to each other at the same time, and packets that an FPGA forgets must be retransmitted.
			// Retransmissions are safe for a single datagram.
			allRanks(t, openWorlds(t, fpgaConfig(t, l, "", ""), deployed),
				func(ctx context.Context, world *mpi.Comm) error {
					for root := range l.ranks {
						l := l
						l.root = root
						if err := work(ctx, &library[float32]{world: world, root: root}, l, world.Rank(), 1,
							346); err != nil {
							return err
						}
					}
					for n := range 3 {
						if err := mpi.Barrier(ctx, world); err != nil {
							return err
						}
						words := valuesOf[int32](n, world.Rank(), 100)
						if err := mpi.Allreduce(ctx, world, words, words, mpi.Sum); err != nil {
							return err
						}
						if want := sum[int32](l, n, 100); !slices.Equal(words, want) {
							return fmt.Errorf("Allreduce %d: %v, want %v", n, words, want)
						}
					}
					return nil
				})
		})
	}
}

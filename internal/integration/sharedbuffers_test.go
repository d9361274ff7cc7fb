package integration_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpe/colltest"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/mpi"
)

// TestSharedBuffersOfARankThatEnds checks that a collective call over shared buffers fails on all ranks if one rank
// closes before it makes the call. The error must name that rank, or a rank that has named it. The call must not fail
// if the rank had completed its part.
func TestSharedBuffersOfARankThatEnds(t *testing.T) {
	const ranks, last = 4, 3
	devices := inProcess("profile: extended")(t, ranks)
	start := func(rank int, c *colltest.Case, tag int) mpe.Op {
		t.Helper()
		o, err := c.Start(devices[rank], tag)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	wait := func(o mpe.Op) error {
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		_, err := o.Await(ctx)
		return err
	}
	// The last rank is the root. It closes once it has published the data.
	first := colltest.NewCase(coll.Allreduce, "shared", ranks, 0, 5)
	var ops []mpe.Op
	for rank := range ranks {
		ops = append(ops, start(rank, first, 1))
	}
	for rank, o := range ops {
		if err := errors.Join(wait(o), first.Check(rank)); err != nil {
			t.Fatalf("rank %d: %v", rank, err)
		}
	}
	bcast := colltest.NewCase(coll.Bcast, "shared", ranks, last, 5)
	if err := wait(start(last, bcast, 2)); err != nil {
		t.Fatal(err)
	}
	if err := devices[last].Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for rank := range last {
		if err := errors.Join(wait(start(rank, bcast, 2)), bcast.Check(rank)); err != nil {
			t.Errorf("rank %d, published data: %v", rank, err)
		}
	}
	barrier := colltest.NewCase(coll.Barrier, "shared", ranks, 0, 0)
	ops = ops[:0]
	for rank := range last {
		ops = append(ops, start(rank, barrier, 3))
	}
	for rank, o := range ops {
		err := wait(o)
		step, ok := errors.AsType[*collective.StepError](err)
		failed, other := errors.AsType[*collective.CallFailedError](err)
		if (!ok || step.Peer != last || !errors.Is(err, mpe.ErrPeerLost)) &&
			(!other || failed.Rank == last || failed.Cause != collective.CausePeerLost) {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}

// TestSharedBuffersOfManyCommunicators checks that freed communicators release their slots of the shared buffers, so
// that a program can create more communicators in sequence than there are slots.
func TestSharedBuffersOfManyCommunicators(t *testing.T) {
	const ranks, comms, calls = 4, 200, 3
	devices := inProcess("profile: extended")(t, ranks)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	var all errgroup.Group
	for _, d := range devices {
		all.Go(func() error {
			world, err := mpi.New(d)
			if err != nil {
				return err
			}
			for range comms {
				c, err := world.Dup(ctx)
				if err != nil {
					return err
				}
				for range calls {
					if err := mpi.Bcast(ctx, c, []byte{1}, 1); err != nil {
						return err
					}
				}
				if err := c.Free(); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	for rank, d := range devices {
		for _, c := range d.(interface{ Snapshot() state.Engine }).Snapshot().Collectives {
			if c.Collective == coll.Bcast.String() && c.Algorithm != "shared" || c.Failures > 0 {
				t.Errorf("rank %d: %+v", rank, c)
			}
		}
	}
}

package integration_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/mpi/mpitest"
)

// TestFailuresReachAllRanks checks that if one rank cancels a call, the call fails on all other ranks, even on a rank
// that makes the call later. A new communicator must still work.
func TestFailuresReachAllRanks(t *testing.T) {
	const ranks, gone = 6, 2
	for link, open := range map[string]mpitest.WorldFunc{
		"udp": inProcess("profile: extended, transport: udp"), "tcp": inProcess("profile: extended, transport: tcp"),
		"shm": inProcess("profile: extended"), "attached": attached,
	} {
		t.Run(link, func(t *testing.T) {
			var worlds []*mpi.Comm
			for _, d := range open(t, ranks) {
				worlds = append(worlds, worldOf(t, d))
			}
			var others sync.WaitGroup
			others.Add(ranks - 2)
			allRanks(t, worlds, func(ctx context.Context, world *mpi.Comm) error {
				r := world.Rank()
				if err := mpi.Barrier(ctx, world); err != nil {
					return err
				}
				sum := []int32{int32(r)}
				switch r {
				case 0:
					others.Wait()
					if err := failedBecauseOf(mpi.Allreduce(ctx, world, sum, sum, mpi.Sum), gone); err != nil {
						return err
					}
				case gone:
					own, cancel := context.WithCancel(ctx)
					cancel()
					if err := mpi.Allreduce(own, world, sum, sum, mpi.Sum); !errors.Is(err, context.Canceled) ||
						errors.Is(err, collective.ErrCallFailed) {
						return fmt.Errorf("the rank that cancels: %w", err)
					}
				default:
					err := failedBecauseOf(mpi.Allreduce(ctx, world, sum, sum, mpi.Sum), gone)
					others.Done()
					if err != nil {
						return err
					}
				}
				fresh, err := world.Dup(ctx)
				if err != nil {
					return err
				}
				sum[0] = int32(r)
				if err := mpi.Allreduce(ctx, fresh, sum, sum, mpi.Sum); err != nil {
					return err
				}
				if want := int32(ranks * (ranks - 1) / 2); sum[0] != want {
					return fmt.Errorf("the sum is %d, not %d", sum[0], want)
				}
				return mpi.Barrier(ctx, world) // and in the old one, too
			})
		})
	}
}

// failedBecauseOf checks that a call failed because another rank cancelled it.
func failedBecauseOf(err error, by int) error {
	failed, ok := errors.AsType[*collective.CallFailedError](err)
	if !ok || failed.Rank != by || failed.Cause != collective.CauseCancelled ||
		!errors.Is(err, collective.ErrCallFailed) || !errors.Is(err, mpi.ErrOther) {
		return fmt.Errorf("the error is not that rank %d has cancelled the call: %w", by, err)
	}
	return nil
}

package mpi_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/zrlmpi/zrlmpid/internal/pmi"
	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/mpi/job"
	"github.com/zrlmpi/zrlmpid/node/statetest"
)

func TestMain(m *testing.M) {
	for _, name := range []string{job.EnvSocket, job.EnvConfig, job.EnvRank, pmi.EnvFD} {
		os.Unsetenv(name) // job.Run would interpret it as the description of a cluster
	}
	os.Exit(statetest.Run(m))
}

// TestTwoWaiters checks that only one goroutine may wait for a request.
func TestTwoWaiters(t *testing.T) {
	if err := job.Run(t.Context(), 2, func(ctx context.Context, world *mpi.Comm) error {
		if world.Rank() == 1 {
			_, err := mpi.Recv(ctx, world, make([]int32, 1), 0, 1) // after the other rank has made all its calls
			return errors.Join(err, mpi.Send(ctx, world, []int32{5}, 0, 0))
		}
		b := make([]int32, 1)
		r, err := mpi.Irecv(world, b, 1, 0)
		if err != nil {
			return err
		}
		waited := make(chan error)
		go func() {
			_, err := r.Wait(ctx)
			waited <- err
		}()
		// Test reports that the request is pending, until the goroutine waits.
		for err == nil {
			_, _, err = r.Test()
		}
		_, wait := r.Wait(ctx)
		all := mpi.Waitall(ctx, []mpi.Request{r}, nil)
		_, _, any := mpi.Waitany(ctx, []mpi.Request{{}, r})
		_, some := mpi.Waitsome(ctx, []mpi.Request{r}, nil, nil)
		for i, err := range []error{err, wait, all, any, some, r.Free()} {
			if !errors.Is(err, mpi.ErrRequest) {
				t.Errorf("call %d: %v", i, err)
			}
		}
		if err := mpi.Send(ctx, world, []int32{0}, 1, 1); err != nil {
			return err
		}
		if err := <-waited; err != nil || b[0] != 5 {
			t.Errorf("%v, received %d", err, b[0])
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

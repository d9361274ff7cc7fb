package mpi_test

import (
	"errors"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// TestCollectivesOnNoCommunicator checks that every collective rejects a nil communicator, which ranks that are not
// members have, even if other arguments are invalid too.
func TestCollectivesOnNoCommunicator(t *testing.T) {
	ctx := t.Context()
	var b []int32
	sum := mpi.Sum
	for name, err := range map[string]error{
		"Barrier":            mpi.Barrier(ctx, nil),
		"Bcast":              mpi.Bcast(ctx, nil, b, -1),
		"Gather":             mpi.Gather(ctx, nil, b, b, 1),
		"Gatherv":            mpi.Gatherv(ctx, nil, b, b, []int{1, 2}, nil, 0),
		"Scatter":            mpi.Scatter(ctx, nil, b, b, 0),
		"Scatterv":           mpi.Scatterv(ctx, nil, b, b, nil, nil, 0),
		"Allgather":          mpi.Allgather(ctx, nil, b, b),
		"Allgatherv":         mpi.Allgatherv(ctx, nil, b, b, nil, nil),
		"Alltoall":           mpi.Alltoall(ctx, nil, b, b),
		"Alltoallv":          mpi.Alltoallv(ctx, nil, b, nil, nil, b, nil, nil),
		"Reduce":             mpi.Reduce(ctx, nil, b, b, sum, 3),
		"Allreduce":          mpi.Allreduce(ctx, nil, b, b, sum),
		"ReduceScatter":      mpi.ReduceScatter(ctx, nil, b, b, nil, sum),
		"ReduceScatterBlock": mpi.ReduceScatterBlock(ctx, nil, b, b, sum),
		"Scan":               mpi.Scan(ctx, nil, b, b, sum),
		"Exscan":             mpi.Exscan(ctx, nil, b, b, sum),
	} {
		if !errors.Is(err, mpi.ErrComm) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

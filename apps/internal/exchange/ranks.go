package exchange

import (
	"context"
	"fmt"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// Root is the rank that Scatter sends from, and Gather receives at.
const Root = 0

// tag is upstream's. It does not travel by profile cloudfpga.
const tag = 0

// Ranks are those that take part.
type Ranks struct {
	*mpi.Comm
	// Flat: this rank, which is not Root, calls Send and Recv only.
	Flat bool
	// Unexpected is in the errors of messages of another length than a flat rank
	// expects.
	Unexpected error
}

// Bcast has the root's buffer reach those of all others. All are of one length, which
// is not 0.
func Bcast[T mpi.Number](ctx context.Context, r Ranks, buf []T, root int) error {
	switch {
	case !r.Flat:
		return mpi.Bcast(ctx, r.Comm, buf, root)
	case r.Rank() != root:
		return recv(ctx, r, buf, root)
	}
	for rank := range r.Size() {
		if rank == root {
			continue
		}
		if err := mpi.Send(ctx, r.Comm, buf, rank, tag); err != nil {
			return err
		}
	}
	return nil
}

// Scatter has each rank receive its own block of all, which is Root's; counts has how
// many numbers each block has, one after another. Other ranks give nil for both. There
// is no message for a block of no numbers. Root's own block may stay where it is.
func Scatter[T mpi.Number](ctx context.Context, r Ranks, all []T, counts []int, own []T) error {
	if !r.Flat {
		return mpi.Scatterv(ctx, r.Comm, all, own, counts, nil, Root)
	}
	if len(own) == 0 {
		return nil
	}
	return recv(ctx, r, own, Root)
}

// Gather is the inverse of Scatter.
func Gather[T mpi.Number](ctx context.Context, r Ranks, own, all []T, counts []int) error {
	if !r.Flat {
		return mpi.Gatherv(ctx, r.Comm, own, all, counts, nil, Root)
	}
	if len(own) == 0 {
		return nil
	}
	return mpi.Send(ctx, r.Comm, own, Root, tag)
}

// recv receives a message of a length that is known.
func recv[T mpi.Number](ctx context.Context, r Ranks, buf []T, from int) error {
	st, err := mpi.Recv(ctx, r.Comm, buf, from, tag)
	if err != nil {
		return err
	}
	if n := mpi.Count[T](st); n != len(buf) {
		return fmt.Errorf("%w: %d numbers from rank %d instead of %d", r.Unexpected, n, from, len(buf))
	}
	return nil
}

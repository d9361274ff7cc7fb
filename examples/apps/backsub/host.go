package backsub

import (
	"context"
	"time"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/examples/apps/internal/exchange"
	"github.com/zrlmpi/zrlmpid/examples/apps/internal/pace"
	"github.com/zrlmpi/zrlmpid/mpi"
)

// Result is the solution of a system of equations.
type Result[T Number] struct {
	// X holds the unknowns.
	X []T
	// DealTime is the time for dealing out the matrix. SolveTime is the time for the rest, from dealing out the right
	// sides to gathering the unknowns.
	DealTime, SolveTime time.Duration
}

// Host solves the equations with matrix a and right sides b. It must run on rank Root; all other ranks of comm are
// workers. If there are no other ranks, it computes everything itself.
func Host[T Number](ctx context.Context, comm *mpi.Comm, a *Matrix[T], b []T, options Options) (*Result[T], error) {
	if err := a.check(b, options); err != nil {
		return nil, err
	}
	begin := time.Now()
	ranks := exchange.NewLibrary(comm)
	var zero T
	s := shape{unknowns: a.Size, size: int(unsafe.Sizeof(zero)), pace: options.Pace}
	if err := exchange.Bcast(ctx, ranks, s.words(), Root); err != nil {
		return nil, err
	}
	d := distribution{unknowns: a.Size, ranks: comm.Size()}
	matrix := rowsByRank(d, a)
	numbers := matrix[:d.maxElements()]
	if err := exchange.Scatter(ctx, ranks, matrix, numbers); err != nil {
		return nil, err
	}
	dealt := time.Now()
	sides := sidesByRank(d, b)
	own := sides[:d.maxRows()]
	if err := exchange.Scatter(ctx, ranks, sides, own); err != nil {
		return nil, err
	}
	own, err := newRows(d, Root, numbers, own).solve(ctx, ranks, pace.Processor{Operation: options.Pace})
	if err != nil {
		return nil, err
	}
	if err := exchange.Gather(ctx, ranks, own, sides); err != nil {
		return nil, err
	}
	x := make([]T, a.Size)
	for i := range x {
		x[i] = sides[i%d.ranks*d.maxRows()+i/d.ranks]
	}
	return &Result[T]{x, dealt.Sub(begin), time.Since(dealt)}, nil
}

// rowsByRank returns the rows of a, from the diagonal on and grouped by rank. All groups have the length of rank 0's,
// so the other groups may end with unused numbers.
func rowsByRank[T Number](d distribution, a *Matrix[T]) []T {
	all := make([]T, d.ranks*d.maxElements())
	for rank := range d.ranks {
		to := all[rank*d.maxElements():]
		for i := rank; i < a.Size; i += d.ranks {
			to = to[copy(to, a.row(i)):]
		}
	}
	return all
}

// sidesByRank returns b, grouped by rank in the same way.
func sidesByRank[T Number](d distribution, b []T) []T {
	all := make([]T, d.ranks*d.maxRows())
	for i, side := range b {
		all[i%d.ranks*d.maxRows()+i/d.ranks] = side
	}
	return all
}

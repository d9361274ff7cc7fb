package backsub

import (
	"context"
	"time"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/apps/internal/exchange"
	"github.com/zrlmpi/zrlmpid/apps/internal/pace"
	"github.com/zrlmpi/zrlmpid/mpi"
)

// Result is the solution of a system of equations.
type Result[T Number] struct {
	// X are the unknowns.
	X []T
	// Deal is how long it took to deal the matrix out, and Solve the rest: from the
	// right sides to the unknowns.
	Deal, Solve time.Duration
}

// Host solves the equations of a and the right sides b with all other ranks of c as
// workers; it is for rank Root. Without other ranks it computes by itself.
func Host[T Number](ctx context.Context, c *mpi.Comm, a *Matrix[T], b []T, o Options) (*Result[T], error) {
	if err := a.check(b, o); err != nil {
		return nil, err
	}
	begin := time.Now()
	ranks := exchange.Ranks{Comm: c}
	var zero T
	s := shape{unknowns: a.Size, size: int(unsafe.Sizeof(zero)), pace: o.Pace}
	if err := exchange.Bcast(ctx, ranks, s.words(), Root); err != nil {
		return nil, err
	}
	d := deal{unknowns: a.Size, ranks: c.Size()}
	matrix, counts := rowsOf(d, a)
	numbers := matrix[:counts[Root]]
	if err := exchange.Scatter(ctx, ranks, matrix, counts, numbers); err != nil {
		return nil, err
	}
	dealt := time.Now()
	sides, counts := sidesOf(d, b)
	own := sides[:counts[Root]]
	if err := exchange.Scatter(ctx, ranks, sides, counts, own); err != nil {
		return nil, err
	}
	own, err := newRows(d, Root, numbers, own).solve(ctx, ranks, pace.Processor{Operation: o.Pace})
	if err != nil {
		return nil, err
	}
	if err := exchange.Gather(ctx, ranks, own, sides, counts); err != nil {
		return nil, err
	}
	x := make([]T, a.Size)
	for rank := range d.ranks {
		for i := rank; i < a.Size; i += d.ranks {
			x[i], sides = sides[0], sides[1:]
		}
	}
	return &Result[T]{x, dealt.Sub(begin), time.Since(dealt)}, nil
}

// rowsOf is a's rows from the diagonal on, by the ranks that get them, and how many
// numbers each rank gets.
func rowsOf[T Number](d deal, a *Matrix[T]) (all []T, counts []int) {
	all = make([]T, 0, a.Size*(a.Size+1)/2)
	counts = make([]int, d.ranks)
	for rank := range counts {
		for i := rank; i < a.Size; i += d.ranks {
			all = append(all, a.row(i)...)
			counts[rank] += a.Size - i
		}
	}
	return all, counts
}

// sidesOf is b by the ranks that get it, and how many numbers each rank gets.
func sidesOf[T Number](d deal, b []T) (all []T, counts []int) {
	all = make([]T, 0, len(b))
	counts = make([]int, d.ranks)
	for rank := range counts {
		for i := rank; i < len(b); i += d.ranks {
			all = append(all, b[i])
			counts[rank]++
		}
	}
	return all, counts
}

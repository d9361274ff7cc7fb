package backsub

import (
	"context"

	"github.com/zrlmpi/zrlmpid/examples/apps/internal/exchange"
	"github.com/zrlmpi/zrlmpid/examples/apps/internal/pace"
)

// distribution describes how the rows are distributed: row i belongs to rank i modulo ranks.
type distribution struct{ unknowns, ranks int }

// rowsAbove returns how many of a rank's rows are above row i. If i is the total number of rows, it counts all of them.
func (d distribution) rowsAbove(i, rank int) int {
	if i <= rank {
		return 0
	}
	return (i - rank + d.ranks - 1) / d.ranks
}

// maxRows returns the number of rows of rank 0. No other rank has more.
func (d distribution) maxRows() int { return d.rowsAbove(d.unknowns, 0) }

// maxElements returns the number of elements in the rows of rank 0, from the diagonal on. No other rank has more.
func (d distribution) maxElements() (n int) {
	for i := 0; i < d.unknowns; i += d.ranks {
		n += d.unknowns - i
	}
	return n
}

// rows holds the rows of one rank.
type rows[T Number] struct {
	distribution
	rank int
	// numbers holds the rows of the matrix from the diagonal on, consecutively. starts holds their offsets.
	numbers []T
	starts  []int
	// b holds the right sides of the equations, which solve replaces by the unknowns. On a rank with one row less than
	// rank 0, it includes one unused element.
	b []T
}

// newRows returns the rows that were dealt to a rank.
func newRows[T Number](d distribution, rank int, numbers, b []T) *rows[T] {
	r := &rows[T]{distribution: d, rank: rank, numbers: numbers, b: b, starts: make([]int, d.rowsAbove(d.unknowns, rank))}
	start := 0
	for k := range r.starts {
		r.starts[k] = start
		start += d.unknowns - (rank + k*d.ranks)
	}
	return r
}

// solve performs all steps, together with the other ranks. It returns the unknowns of the rank's rows.
func (r *rows[T]) solve(ctx context.Context, ranks *exchange.Ranks, processor pace.Processor) ([]T, error) {
	var pivot [1]T
	for i := r.unknowns - 1; i >= 0; i-- {
		owner, k := i%r.ranks, i/r.ranks
		if owner == r.rank {
			r.b[k] /= r.numbers[r.starts[k]]
			pivot[0] = r.b[k]
			if err := processor.Spend(ctx, 1); err != nil {
				return nil, err
			}
		}
		if err := exchange.Bcast(ctx, ranks, pivot[:], owner); err != nil {
			return nil, err
		}
		above := r.rowsAbove(i, r.rank)
		for k := range above {
			j := r.rank + k*r.ranks
			r.b[k] = subtractProduct(r.b[k], pivot[0], r.numbers[r.starts[k]+i-j])
		}
		if err := processor.Spend(ctx, above); err != nil {
			return nil, err
		}
	}
	return r.b, nil
}

package backsub

import (
	"context"

	"github.com/zrlmpi/zrlmpid/examples/apps/internal/exchange"
	"github.com/zrlmpi/zrlmpid/examples/apps/internal/pace"
)

// deal is how the rows are dealt out: row i is that of rank i modulo ranks.
type deal struct{ unknowns, ranks int }

// above is how many rows a rank has above row i, which may be the one behind the last.
func (d deal) above(i, rank int) int {
	if i <= rank {
		return 0
	}
	return (i - rank + d.ranks - 1) / d.ranks
}

// share is how many rows a rank has at most. Rank 0 has as many.
func (d deal) share() int { return d.above(d.unknowns, 0) }

// numbers is how many numbers the rows of rank 0 have, from the diagonal on. No rank has
// more.
func (d deal) numbers() (n int) {
	for i := 0; i < d.unknowns; i += d.ranks {
		n += d.unknowns - i
	}
	return n
}

// rows are those of one rank.
type rows[T Number] struct {
	deal
	rank int
	// numbers are the rows of the matrix from the diagonal on, one after another;
	// starts has where each begins.
	numbers []T
	starts  []int
	// b are the right sides, and become the unknowns. Ranks that have a row less than
	// others have a number more than rows.
	b []T
}

// newRows takes the rows as they have been dealt out.
func newRows[T Number](d deal, rank int, numbers, b []T) *rows[T] {
	r := &rows[T]{deal: d, rank: rank, numbers: numbers, b: b, starts: make([]int, d.above(d.unknowns, rank))}
	start := 0
	for k := range r.starts {
		r.starts[k] = start
		start += d.unknowns - (rank + k*d.ranks)
	}
	return r
}

// solve does all steps, together with the other ranks. It returns the unknowns of these
// rows.
func (r *rows[T]) solve(ctx context.Context, ranks *exchange.Ranks, p pace.Processor) ([]T, error) {
	var pivot [1]T
	for i := r.unknowns - 1; i >= 0; i-- {
		owner, k := i%r.ranks, i/r.ranks
		if owner == r.rank {
			r.b[k] /= r.numbers[r.starts[k]]
			pivot[0] = r.b[k]
			if err := p.Spend(ctx, 1); err != nil {
				return nil, err
			}
		}
		if err := exchange.Bcast(ctx, ranks, pivot[:], owner); err != nil {
			return nil, err
		}
		above := r.above(i, r.rank)
		for k := range above {
			j := r.rank + k*r.ranks
			r.b[k] = minus(r.b[k], pivot[0], r.numbers[r.starts[k]+i-j])
		}
		if err := p.Spend(ctx, above); err != nil {
			return nil, err
		}
	}
	return r.b, nil
}

package matvec

import (
	"context"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/examples/apps/internal/exchange"
	"github.com/zrlmpi/zrlmpid/examples/apps/internal/pace"
	"github.com/zrlmpi/zrlmpid/mpi"
)

// Host computes the product of matrix and x. It must run on rank Root; all other ranks of comm are workers. If there
// are no other ranks, it computes everything itself.
func Host[T Number](ctx context.Context, comm *mpi.Comm, matrix *Matrix[T], x []T, options Options) ([]T, error) {
	if err := matrix.check(x, options); err != nil {
		return nil, err
	}
	var zero T
	share := (matrix.Rows + comm.Size() - 1) / comm.Size()
	s := shape{rows: matrix.Rows, columns: matrix.Columns, rowsPerTurn: min(max(options.Rows, 1), share),
		size: int(unsafe.Sizeof(zero)),
		pace: options.Pace}
	ranks := exchange.NewLibrary(comm)
	if err := exchange.Bcast(ctx, ranks, s.words(), Root); err != nil {
		return nil, err
	}
	if err := exchange.Bcast(ctx, ranks, x, Root); err != nil {
		return nil, err
	}
	d := distribution{rows: s.rows, rowsPerTurn: s.rowsPerTurn, ranks: comm.Size()}
	processor := pace.Processor{Operation: options.Pace}
	own := make([]T, d.rowsPerRank())
	block := d.rowsPerTurn * s.columns
	for round := range d.rounds() {
		begin, rows := d.block(round, Root)
		dealt := matrix.Numbers[begin*s.columns:]
		if all := d.ranks * block; len(dealt) >= all {
			dealt = dealt[:all]
		} else {
			dealt = append(make([]T, 0, all), dealt...)[:all] // the last round
		}
		first := dealt[:block] // not copied
		if err := exchange.Scatter(ctx, ranks, dealt, first); err != nil {
			return nil, err
		}
		if err := multiply(ctx, &processor, own[round*d.rowsPerTurn:][:rows], first, x); err != nil {
			return nil, err
		}
	}
	return gather(ctx, ranks, d, own)
}

// gather collects the elements of all ranks and returns them in order.
func gather[T Number](ctx context.Context, ranks *exchange.Ranks, d distribution, own []T) ([]T, error) {
	byRank := make([]T, d.ranks*d.rowsPerRank())
	if err := exchange.Gather(ctx, ranks, own, byRank); err != nil {
		return nil, err
	}
	y := make([]T, d.rows)
	for rank := range d.ranks {
		for round := range d.rounds() {
			first, n := d.block(round, rank)
			copy(y[first:first+n], byRank)
			byRank = byRank[d.rowsPerTurn:]
		}
	}
	return y, nil
}

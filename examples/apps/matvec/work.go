package matvec

import (
	"context"
	"fmt"

	"github.com/zrlmpi/zrlmpid/examples/apps/internal/exchange"
	"github.com/zrlmpi/zrlmpid/examples/apps/internal/pace"
	"github.com/zrlmpi/zrlmpid/mpi"
)

// Work serves rank Root as a worker for one computation. The messages from Root determine the size of the matrix.
func Work[T Number](ctx context.Context, comm *mpi.Comm, options Options) error {
	if err := options.Check(); err != nil {
		return err
	}
	if comm.Rank() == Root {
		return fmt.Errorf("%w: rank %d is the host, not a worker", ErrOptions, Root)
	}
	ranks := exchange.NewLibrary(comm)
	if options.Unrolled && exchange.MatchesByOrder(comm) {
		var err error
		if ranks, err = exchange.NewUnrolled(comm, options.FPGAs, ErrMessage); err != nil {
			return fmt.Errorf("%w: %w", ErrOptions, err)
		}
	}
	var words [shapeWords]int32
	if err := exchange.Bcast(ctx, ranks, words[:], Root); err != nil {
		return err
	}
	s, err := decodeShape[T](words[:], comm.Size(), ranks.Blocks(), options)
	if err != nil {
		return err
	}
	x := make([]T, s.columns)
	if err := exchange.Bcast(ctx, ranks, x, Root); err != nil {
		return err
	}
	d := distribution{rows: s.rows, rowsPerTurn: s.rowsPerTurn, ranks: comm.Size()}
	processor := pace.Processor{Operation: s.pace}
	rows := make([]T, s.rowsPerTurn*s.columns)
	y := make([]T, d.rowsPerRank())
	for round := range d.rounds() {
		if err := exchange.Scatter(ctx, ranks, nil, rows); err != nil {
			return err
		}
		_, n := d.block(round, comm.Rank())
		if err := multiply(ctx, &processor, y[round*d.rowsPerTurn:][:n], rows, x); err != nil {
			return err
		}
	}
	return exchange.Gather(ctx, ranks, y, nil)
}

package backsub

import (
	"context"
	"fmt"

	"github.com/zrlmpi/zrlmpid/examples/apps/internal/exchange"
	"github.com/zrlmpi/zrlmpid/examples/apps/internal/pace"
	"github.com/zrlmpi/zrlmpid/mpi"
)

// Work serves rank Root as a worker for one computation. The messages from Root determine the number of unknowns.
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
	s, err := decodeShape[T](words[:])
	if err != nil {
		return err
	}
	d := distribution{unknowns: s.unknowns, ranks: comm.Size()}
	n := d.maxElements()
	if words := ranks.Blocks() * n * s.size / wordLen; words > options.Words {
		return fmt.Errorf("%w: the rows that rank %d gets of a matrix of %d are %d words, but it accepts at most %d (its "+
			"option words)",
			ErrMessage, comm.Rank(), s.unknowns, words, options.Words)
	}
	numbers, b := make([]T, n), make([]T, d.maxRows())
	if err := exchange.Scatter(ctx, ranks, nil, numbers); err != nil {
		return err
	}
	if err := exchange.Scatter(ctx, ranks, nil, b); err != nil {
		return err
	}
	x, err := newRows(d, comm.Rank(), numbers, b).solve(ctx, ranks, pace.Processor{Operation: s.pace})
	if err != nil {
		return err
	}
	return exchange.Gather(ctx, ranks, x, nil)
}

package jacobi

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// Host computes the given number of iterations of the grid. It must run on rank Root. All other ranks of comm are
// workers with the same options, which must fit the grid. If there are no other ranks, Host computes everything itself.
//
// The messages to one worker are in upstream's order. Host serves all workers concurrently, whereas upstream's
// host serves one at a time.
func Host[T Cell](ctx context.Context, comm *mpi.Comm, grid *Grid[T], iterations int, options Options) error {
	if err := grid.check(); err != nil {
		return err
	}
	if comm.Size() == 1 {
		Serial(grid, iterations)
		return nil
	}
	options.Columns = grid.Size
	options, err := options.withDefaults(comm.Size())
	if err != nil {
		return err
	}
	if workers := comm.Size() - 1; options.Lines*workers < grid.Size {
		return fmt.Errorf("%w: %d workers with %d lines each are not enough for a grid of %d lines", ErrOptions, workers,
			options.Lines, grid.Size)
	}
	for worker := 1; worker < comm.Size(); worker++ {
		if err := mpi.Send(ctx, comm, []int32{int32(iterations)}, worker, tag); err != nil {
			return err
		}
	}
	next := grid.clone()
	for range iterations {
		workers, serving := errgroup.WithContext(ctx)
		for worker := 1; worker < comm.Size(); worker++ {
			workers.Go(func() error { return serve(serving, comm, grid, next, worker, options) })
		}
		if err := workers.Wait(); err != nil {
			return err
		}
		grid.Cells, next.Cells = next.Cells, grid.Cells
	}
	return nil
}

// serve lets one worker compute its lines, and stores them in next.
func serve[T Cell](ctx context.Context, comm *mpi.Comm, grid, next *Grid[T], worker int, options Options) error {
	first := (worker - 1) * options.Lines // the exchange includes one line above and one below
	outside := make([]T, grid.Size)
	for i := first - 1; i <= first+options.Lines; i++ {
		line := outside
		if i >= 0 && i < grid.Size {
			line = grid.Line(i)
		}
		if err := sendLine(ctx, comm, line, options.Words, worker); err != nil {
			return err
		}
	}
	line := make([]T, grid.Size)
	for i := first - 1; i <= first+options.Lines; i++ {
		if err := recvLine(ctx, comm, line, options.Words, worker); err != nil {
			return err
		}
		// The outer lines belong to the neighbours, so they are not copied. The border keeps its values, because
		// upstream's workers do not set it.
		if i >= max(first, 1) && i < min(first+options.Lines, grid.Size-1) {
			copy(next.Line(i)[1:grid.Size-1], line[1:grid.Size-1])
		}
	}
	return nil
}

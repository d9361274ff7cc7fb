package jacobi

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// Host computes the given number of iterations of the grid. It must run on rank Root. All other ranks of c are
// workers with the same options, which must fit the grid. If there are no other ranks, Host computes everything
// itself.
//
// The messages to one worker are in upstream's order. Host serves all workers concurrently, whereas upstream's
// host serves one at a time.
func Host[T Cell](ctx context.Context, c *mpi.Comm, g *Grid[T], iterations int, o Options) error {
	if err := g.check(); err != nil {
		return err
	}
	if c.Size() == 1 {
		Serial(g, iterations)
		return nil
	}
	o.Columns = g.Size
	o, err := o.withDefaults(c.Size())
	if err != nil {
		return err
	}
	if workers := c.Size() - 1; o.Lines*workers < g.Size {
		return fmt.Errorf("%w: %d workers with %d lines each have not enough for a grid of %d", ErrOptions, workers,
			o.Lines, g.Size)
	}
	for worker := 1; worker < c.Size(); worker++ {
		if err := mpi.Send(ctx, c, []int32{int32(iterations)}, worker, tag); err != nil {
			return err
		}
	}
	next := g.clone()
	for range iterations {
		workers, serving := errgroup.WithContext(ctx)
		for worker := 1; worker < c.Size(); worker++ {
			workers.Go(func() error { return serve(serving, c, g, next, worker, o) })
		}
		if err := workers.Wait(); err != nil {
			return err
		}
		g.Cells, next.Cells = next.Cells, g.Cells
	}
	return nil
}

// serve makes one worker compute its lines of next.
func serve[T Cell](ctx context.Context, c *mpi.Comm, g, next *Grid[T], worker int, o Options) error {
	first := (worker - 1) * o.Lines // the exchange includes one line above and one below
	outside := make([]T, g.Size)
	for i := first - 1; i <= first+o.Lines; i++ {
		line := outside
		if i >= 0 && i < g.Size {
			line = g.Line(i)
		}
		if err := sendLine(ctx, c, line, o.Words, worker); err != nil {
			return err
		}
	}
	line := make([]T, g.Size)
	for i := first - 1; i <= first+o.Lines; i++ {
		if err := recvLine(ctx, c, line, o.Words, worker); err != nil {
			return err
		}
		// The outer lines belong to the neighbours. The border is left alone, because upstream's workers do not
		// set it.
		if i >= max(first, 1) && i < min(first+o.Lines, g.Size-1) {
			copy(next.Line(i)[1:g.Size-1], line[1:g.Size-1])
		}
	}
	return nil
}

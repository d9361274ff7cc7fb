// Command jacobi computes the Jacobi iteration of a square grid: rank 0 has the grid, and all other ranks compute
// blocks of its lines. A stand-in with kernel jacobi can also be a worker. Host and Work in examples/apps/jacobi
// exchange the messages.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/examples/apps/jacobi"
	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/mpi/job"
)

var (
	ranks      = flag.Int("ranks", 5, "`number` of ranks in this process")
	size       = flag.Int("size", 256, "`number` of lines of the grid, and of columns")
	iterations = flag.Int("iterations", 10, "`number` of iterations")
)

// border is the value of the cells at the edge, as in upstream's example.
const border = 128

func main() {
	flag.Parse()
	job.Main(*ranks, iterate)
}

func iterate(ctx context.Context, world *mpi.Comm) error {
	options := jacobi.Options{Columns: *size}
	if err := options.Check(); err != nil {
		return err
	}
	if world.Rank() != jacobi.Root {
		return jacobi.Work[int32](ctx, world, options)
	}
	grid, serial := jacobi.NewGrid[int32](*size, border), jacobi.NewGrid[int32](*size, border)
	start := time.Now()
	if err := jacobi.Host(ctx, world, grid, *iterations, options); err != nil {
		return err
	}
	if _, err := fmt.Printf("%d x %d cells, iterations: %d, ranks: %d, time: %v\n", *size, *size, *iterations,
		world.Size(), time.Since(start)); err != nil {
		return err
	}
	start = time.Now()
	jacobi.Serial(serial, *iterations)
	if _, err := fmt.Printf("on one processor, time: %v\n", time.Since(start)); err != nil {
		return err
	}
	for i := 1; i < *size/2; i *= 2 {
		if _, err := fmt.Printf("cell %3d, %3d: %3d\n", i, i, grid.Line(i)[i]); err != nil {
			return err
		}
	}
	if !slices.Equal(grid.Cells, serial.Cells) {
		return errors.New("the cells differ from the result of one processor")
	}
	return nil
}

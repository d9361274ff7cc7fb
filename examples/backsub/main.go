// Command backsub solves linear equations with an upper triangular matrix: rank 0 deals the rows out to all ranks, each
// of which computes unknowns and sends them to all other ranks. A stand-in with kernel backsub can also be a worker.
// Host and Work in examples/apps/backsub exchange the messages.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/examples/apps/backsub"
	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/mpi/job"
)

var (
	ranks = flag.Int("ranks", 8, "`number` of ranks in this process")
	size  = flag.Int("size", 600, "`number` of equations, and of unknowns")
)

func main() {
	flag.Parse()
	job.Main(*ranks, solve)
}

func solve(ctx context.Context, world *mpi.Comm) error {
	n := *size
	if n < 1 || n > backsub.MaxSize {
		return fmt.Errorf("-size %d: must be 1 to %d", n, backsub.MaxSize)
	}
	if world.Rank() != backsub.Root {
		return backsub.Work[float32](ctx, world, backsub.Options{Words: n * n})
	}
	matrix, right := equations(n)
	got, err := backsub.Host(ctx, world, matrix, right, backsub.Options{})
	if err != nil {
		return err
	}
	if _, err := fmt.Printf("equations: %d, ranks: %d, time: %v, dealing the rows out: %v\n", n, world.Size(),
		got.SolveTime, got.DealTime); err != nil {
		return err
	}
	start := time.Now()
	want, err := backsub.Serial(ctx, matrix, right, backsub.Options{})
	if err != nil {
		return err
	}
	if _, err := fmt.Printf("on one processor, time: %v\n", time.Since(start)); err != nil {
		return err
	}
	if !slices.Equal(got.X, want) {
		return errors.New("the unknowns differ from the result of one processor")
	}
	return nil
}

// equations returns a fixed matrix and its right sides. The unknowns are neither huge nor tiny.
func equations(n int) (*backsub.Matrix[float32], []float32) {
	random := rand.New(rand.NewPCG(1, 0))
	matrix, right := &backsub.Matrix[float32]{Size: n, Numbers: make([]float32, n*n)}, make([]float32, n)
	for i := range n {
		right[i] = 2*random.Float32() - 1
		matrix.Numbers[i*n+i] = 1 + random.Float32()
		for j := i + 1; j < n; j++ {
			matrix.Numbers[i*n+j] = (2*random.Float32() - 1) / float32(n)
		}
	}
	return matrix, right
}

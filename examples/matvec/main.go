// Command matvec multiplies a matrix by a vector: rank 0 deals the rows out to all ranks, and gathers the result. A
// stand-in with kernel matvec can also be a worker. Host and Work in examples/apps/matvec exchange the messages.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/examples/apps/matvec"
	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/mpi/job"
)

var (
	ranks = flag.Int("ranks", 8, "`number` of ranks in this process")
	size  = flag.Int("size", 300, "`number` of rows, and of columns")
)

func main() {
	flag.Parse()
	job.Main(*ranks, multiply)
}

func multiply(ctx context.Context, world *mpi.Comm) error {
	n := *size
	if n < 1 || n > matvec.MaxSize {
		return fmt.Errorf("-size %d: must be 1 to %d", n, matvec.MaxSize)
	}
	if world.Rank() != matvec.Root {
		return matvec.Work[float32](ctx, world, matvec.Options{Words: n * n})
	}
	matrix, vector := &matvec.Matrix[float32]{Rows: n, Columns: n, Numbers: randomNumbers(n * n)}, randomNumbers(n)
	start := time.Now()
	got, err := matvec.Host(ctx, world, matrix, vector, matvec.Options{})
	if err != nil {
		return err
	}
	if _, err := fmt.Printf("%d x %d numbers, ranks: %d, time: %v\n", n, n, world.Size(),
		time.Since(start)); err != nil {
		return err
	}
	start = time.Now()
	want, err := matvec.Serial(ctx, matrix, vector, matvec.Options{})
	if err != nil {
		return err
	}
	if _, err := fmt.Printf("on one processor, time: %v\n", time.Since(start)); err != nil {
		return err
	}
	if !slices.Equal(got, want) {
		return errors.New("the product differs from the result of one processor")
	}
	return nil
}

// randomNumbers returns fixed numbers.
func randomNumbers(n int) []float32 {
	random := rand.New(rand.NewPCG(1, 0))
	numbers := make([]float32, n)
	for i := range numbers {
		numbers[i] = 2*random.Float32() - 1
	}
	return numbers
}

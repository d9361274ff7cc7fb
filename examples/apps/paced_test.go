// Package apps_test measures the programs of this folder on slow processors.
package apps_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/examples/apps/backsub"
	"github.com/zrlmpi/zrlmpid/examples/apps/matvec"
	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/mpi/job"
)

// BenchmarkPaced runs the two programs of Pires, Véstias and Neto with their largest problem each, on processors that
// are as slow as theirs: an operation takes 9 µs. A rank sleeps for that time and does not need a core, so the times
// for different numbers of ranks show the cost of messages.
func BenchmarkPaced(b *testing.B) {
	const pace = 9 * time.Microsecond
	const size, words = 300, 1 << 20
	matrix := &matvec.Matrix[float32]{Rows: size, Columns: size, Numbers: slices.Repeat([]float32{1}, size*size)}
	vector := slices.Repeat([]float32{1}, size)
	const unknowns = 600
	triangle := &backsub.Matrix[float32]{Size: unknowns, Numbers: slices.Repeat([]float32{1}, unknowns*unknowns)}
	right := slices.Repeat([]float32{1}, unknowns)

	paced(b, fmt.Sprintf("matvec/size=%d", size),
		func(ctx context.Context, world *mpi.Comm) (time.Duration, error) {
			start := time.Now()
			_, err := matvec.Host(ctx, world, matrix, vector, matvec.Options{Pace: pace})
			return time.Since(start), err
		},
		func(ctx context.Context, world *mpi.Comm) error {
			return matvec.Work[float32](ctx, world, matvec.Options{Words: words})
		})
	paced(b, fmt.Sprintf("backsub/size=%d", unknowns),
		func(ctx context.Context, world *mpi.Comm) (time.Duration, error) {
			r, err := backsub.Host(ctx, world, triangle, right, backsub.Options{Pace: pace})
			if err != nil {
				return 0, err
			}
			return r.SolveTime, nil // the paper's times do not include dealing the rows out
		},
		func(ctx context.Context, world *mpi.Comm) error {
			return backsub.Work[float32](ctx, world, backsub.Options{Words: words})
		})
}

// paced runs a program with the numbers of ranks in the paper's tables, and reports the mean time.
func paced(b *testing.B, name string, host func(context.Context, *mpi.Comm) (time.Duration, error),
	work func(context.Context, *mpi.Comm) error) {
	for _, ranks := range []int{1, 2, 4, 6, 8} {
		b.Run(fmt.Sprintf("%s/ranks=%d", name, ranks), func(b *testing.B) {
			err := job.Run(b.Context(), ranks, func(ctx context.Context, world *mpi.Comm) error {
				var total time.Duration
				for range b.N {
					if world.Rank() != 0 {
						if err := work(ctx, world); err != nil {
							return err
						}
						continue
					}
					took, err := host(ctx, world)
					if err != nil {
						return err
					}
					total += took
				}
				if world.Rank() == 0 {
					b.ReportMetric(float64(total.Microseconds())/1e3/float64(b.N), "ms/run")
				}
				return nil
			})
			if err != nil {
				b.Fatal(err)
			}
		})
	}
}

package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/zrlmpi/zrlmpid/examples/apps/matvec"
	"github.com/zrlmpi/zrlmpid/examples/internal/demo"
	"github.com/zrlmpi/zrlmpid/examples/internal/scaling"
	"github.com/zrlmpi/zrlmpid/mpi"
)

type program struct {
	scaling.Study
	rows int
}

func newProgram() *program {
	return &program{Study: scaling.Study{Title: "products of a matrix and a vector", Table: paper}}
}

// Flags implements demo.Example.
func (p *program) Flags(f *flag.FlagSet) {
	p.Declare(f, paperSizes)
	f.IntVar(&p.rows, "rows", 1, "how many `rows` a rank gets at a time; the paper's have room for one")
}

// Check implements demo.Example.
func (p *program) Check(int) error {
	if p.rows < 1 || p.rows > matvec.MaxSize {
		return fmt.Errorf("-rows %d: 1 to %d are possible", p.rows, matvec.MaxSize)
	}
	return p.Options.Check(matvec.MaxSize)
}

// Run implements demo.Example.
func (p *program) Run(ctx context.Context, world *mpi.Comm) (demo.Result, error) {
	if p.Datatype == scaling.Double {
		return run[float64](ctx, world, p)
	}
	return run[float32](ctx, world, p)
}

// run is one rank's part.
func run[T matvec.Number](ctx context.Context, world *mpi.Comm, p *program) (demo.Result, error) {
	return p.Study.Run(world.Rank(),
		func(size int) error { return measure[T](ctx, world, p, size) },
		func() error { return matvec.Work[T](ctx, world, matvec.Options{Words: p.Words()}) })
}

// measure is rank 0's part in one problem.
func measure[T matvec.Number](ctx context.Context, world *mpi.Comm, p *program, size int) error {
	a, x := problem[T](size)
	o := matvec.Options{Rows: p.rows, Pace: p.Pace}
	timed := func(multiply func() ([]T, error)) func() ([]T, scaling.Run, error) {
		return func() ([]T, scaling.Run, error) {
			start := time.Now()
			y, err := multiply()
			return y, scaling.Run{Time: time.Since(start)}, err
		}
	}
	return scaling.Measure(&p.Study, size, world.Size(),
		timed(func() ([]T, error) { return matvec.Serial(ctx, a, x, o) }),
		timed(func() ([]T, error) { return matvec.Host(ctx, world, a, x, o) }))
}

// problem makes a matrix and a vector, the same ones everywhere.
func problem[T matvec.Number](size int) (*matvec.Matrix[T], []T) {
	random := rand.New(rand.NewPCG(uint64(size), 0))
	numbers := make([]T, size*(size+1))
	for i := range numbers {
		numbers[i] = T(2*random.Float64() - 1)
	}
	return &matvec.Matrix[T]{Rows: size, Columns: size, Numbers: numbers[size:]}, numbers[:size]
}

package main

import (
	"context"
	"flag"
	"math/rand/v2"
	"time"

	"github.com/zrlmpi/zrlmpid/examples/apps/backsub"
	"github.com/zrlmpi/zrlmpid/examples/internal/demo"
	"github.com/zrlmpi/zrlmpid/examples/internal/scaling"
	"github.com/zrlmpi/zrlmpid/mpi"
)

type program struct{ scaling.Study }

func newProgram() *program {
	return &program{scaling.Study{Title: "back substitution in triangular matrices", Table: paper}}
}

// Flags implements demo.Example.
func (p *program) Flags(f *flag.FlagSet) { p.Declare(f, paperSizes) }

// Check implements demo.Example.
func (p *program) Check(int) error { return p.Options.Check(backsub.MaxSize) }

// Run implements demo.Example.
func (p *program) Run(ctx context.Context, world *mpi.Comm) (demo.Result, error) {
	if p.Datatype == scaling.Double {
		return run[float64](ctx, world, p)
	}
	return run[float32](ctx, world, p)
}

// run is one rank's part.
func run[T backsub.Number](ctx context.Context, world *mpi.Comm, p *program) (demo.Result, error) {
	return p.Study.Run(world.Rank(),
		func(size int) error { return measure[T](ctx, world, p, size) },
		func() error { return backsub.Work[T](ctx, world, backsub.Options{Words: p.Words()}) })
}

// measure is rank 0's part in one problem.
func measure[T backsub.Number](ctx context.Context, world *mpi.Comm, p *program, size int) error {
	a, b := problem[T](size)
	o := backsub.Options{Pace: p.Pace}
	return scaling.Measure(&p.Study, size, world.Size(),
		func() ([]T, scaling.Run, error) {
			start := time.Now()
			x, err := backsub.Serial(ctx, a, b, o)
			return x, scaling.Run{Time: time.Since(start)}, err
		},
		func() ([]T, scaling.Run, error) {
			r, err := backsub.Host(ctx, world, a, b, o)
			if err != nil {
				return nil, scaling.Run{}, err
			}
			return r.X, scaling.Run{Time: r.Solve, Deal: r.Deal}, nil
		})
}

// problem makes equations, the same ones everywhere. Their unknowns are neither huge nor
// tiny.
func problem[T backsub.Number](size int) (*backsub.Matrix[T], []T) {
	random := rand.New(rand.NewPCG(uint64(size), 0))
	a, b := &backsub.Matrix[T]{Size: size, Numbers: make([]T, size*size)}, make([]T, size)
	for i := range size {
		b[i] = T(2*random.Float64() - 1)
		a.Numbers[i*size+i] = T(1 + random.Float64())
		for j := i + 1; j < size; j++ {
			a.Numbers[i*size+j] = T((2*random.Float64() - 1) / float64(size))
		}
	}
	return a, b
}

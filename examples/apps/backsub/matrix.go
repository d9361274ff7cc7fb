package backsub

import (
	"context"
	"fmt"
	"slices"

	"github.com/zrlmpi/zrlmpid/examples/apps/internal/pace"
)

// Number is the element type of matrices and vectors.
type Number interface{ float32 | float64 }

// Matrix is a square matrix. Elements below its diagonal are not read.
type Matrix[T Number] struct {
	// Size is the number of rows and columns.
	Size int
	// Numbers holds the rows, consecutively.
	Numbers []T
}

// row returns row i from the diagonal on.
func (a *Matrix[T]) row(i int) []T { return a.Numbers[i*a.Size+i : (i+1)*a.Size] }

func (a *Matrix[T]) check(b []T, options Options) error {
	switch n := a.Size; {
	case n < 1 || n > MaxSize:
		return fmt.Errorf("%w: a matrix of %d rows: must be 1 to %d", ErrOptions, n, MaxSize)
	case len(a.Numbers) != n*n:
		return fmt.Errorf("%w: a matrix of %d x %d with %d numbers", ErrOptions, n, n, len(a.Numbers))
	case len(b) != n:
		return fmt.Errorf("%w: %d right sides of %d equations", ErrOptions, len(b), n)
	}
	for i := range a.Size {
		if a.row(i)[0] == 0 {
			return fmt.Errorf("%w: row %d, counted from 0, has a 0 on the diagonal: there is no unique solution",
				ErrOptions, i)
		}
	}
	return options.check()
}

// Serial solves the equations on one processor, as a reference for Host. b holds the right sides.
func Serial[T Number](ctx context.Context, matrix *Matrix[T], b []T, o Options) ([]T, error) {
	if err := matrix.check(b, o); err != nil {
		return nil, err
	}
	processor := pace.Processor{Operation: o.Pace}
	x, n := slices.Clone(b), matrix.Size
	for i := n - 1; i >= 0; i-- {
		x[i] /= matrix.Numbers[i*n+i]
		for j := range i {
			x[j] = subtractProduct(x[j], x[i], matrix.Numbers[j*n+i])
		}
		if err := processor.Spend(ctx, 1+i); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// subtractProduct returns b − x·a. The conversion rounds the product. Without the conversion, some machines would
// round only the difference, depending on the surrounding code.
func subtractProduct[T Number](b, x, a T) T {
	return b - T(x*a) //nolint:unconvert // it rounds
}

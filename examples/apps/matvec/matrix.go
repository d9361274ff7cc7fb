package matvec

import (
	"context"
	"fmt"

	"github.com/zrlmpi/zrlmpid/examples/apps/internal/pace"
)

// Number is the element type of matrices and vectors.
type Number interface{ float32 | float64 }

// Matrix is a matrix of numbers.
type Matrix[T Number] struct {
	Rows, Columns int
	// Numbers holds the rows, consecutively.
	Numbers []T
}

func (a *Matrix[T]) check(x []T, options Options) error {
	switch {
	case a.Rows < 1 || a.Rows > MaxSize || a.Columns < 1 || a.Columns > MaxSize:
		return fmt.Errorf("%w: a matrix of %d x %d: must have 1 to %d rows and columns", ErrOptions, a.Rows,
			a.Columns, MaxSize)
	case len(a.Numbers) != a.Rows*a.Columns:
		return fmt.Errorf("%w: a matrix of %d x %d with %d numbers", ErrOptions, a.Rows, a.Columns, len(a.Numbers))
	case len(x) != a.Columns:
		return fmt.Errorf("%w: a vector of %d numbers for a matrix of %d columns", ErrOptions, len(x), a.Columns)
	}
	return options.check()
}

// Serial computes the product on one processor, as a reference for Host.
func Serial[T Number](ctx context.Context, a *Matrix[T], x []T, o Options) ([]T, error) {
	if err := a.check(x, o); err != nil {
		return nil, err
	}
	y := make([]T, a.Rows)
	if err := multiply(ctx, &pace.Processor{Operation: o.Pace}, y, a.Numbers, x); err != nil {
		return nil, err
	}
	return y, nil
}

// multiply computes len(y) elements of the product, each from one row of the matrix.
func multiply[T Number](ctx context.Context, processor *pace.Processor, y, rows, x []T) error {
	for i := range y {
		row := rows[i*len(x):][:len(x)]
		sum := T(0)
		for j, v := range x {
			// The conversion rounds the product. Without the conversion, some machines would round only the
			// sum, depending on the surrounding code.
			sum += T(row[j] * v) //nolint:unconvert // it rounds
		}
		y[i] = sum
		if err := processor.Spend(ctx, len(x)); err != nil {
			return err
		}
	}
	return nil
}

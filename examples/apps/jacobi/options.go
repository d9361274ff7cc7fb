package jacobi

import (
	"errors"
	"fmt"
)

// Root is the rank that has the grid.
const Root = 0

// DefaultColumns is the width of the grid in upstream's example.
const DefaultColumns = 512

// MaxColumns is the widest grid. A worker holds two blocks of cells, each of
// which takes up to 1 GiB.
const MaxColumns = 1 << 14

// minColumns leaves a cell within the border.
const minColumns = 3

// tag is upstream's. It does not travel by profile cloudfpga.
const tag = 0

// Options are what all ranks must agree on: upstream compiles them into the
// programs of hosts and FPGAs.
type Options struct {
	// Columns is the width of the grid in cells; 0 is DefaultColumns.
	Columns int
	// Lines is how many lines a worker computes. 0 shares those of a square
	// grid out evenly, rounded up; the last workers may have fewer then, or
	// none, and compute on lines of zeros that are not used.
	Lines int
	// Words is the longest message in words. Longer lines are cut. 0 is no
	// limit.
	Words int
}

// ErrOptions matches the errors of invalid options.
var ErrOptions = errors.New("jacobi: wrong options")

// ErrMessage matches the errors of messages that the options do not allow.
var ErrMessage = errors.New("jacobi: unexpected message")

// Check returns an error if there is no cluster that the options are for.
func (o Options) Check() error {
	_, err := o.in(2)
	return err
}

// in returns the options with nothing left open, for a cluster of so many ranks.
func (o Options) in(ranks int) (Options, error) {
	if o.Columns == 0 {
		o.Columns = DefaultColumns
	}
	switch {
	case ranks < 2:
		return o, fmt.Errorf("%w: a cluster of %d has no workers", ErrOptions, ranks)
	case o.Columns < minColumns || o.Columns > MaxColumns:
		return o, fmt.Errorf("%w: %d columns: %d to %d are possible", ErrOptions, o.Columns, minColumns, MaxColumns)
	case o.Lines < 0 || o.Lines > MaxColumns:
		return o, fmt.Errorf("%w: %d lines for each worker: 1 to %d are possible, or 0 to share them out", ErrOptions, o.Lines, MaxColumns)
	case o.Words < 0:
		return o, fmt.Errorf("%w: messages of at most %d words: give 1 or more, or 0 for no limit", ErrOptions, o.Words)
	}
	workers := ranks - 1
	if o.Lines == 0 {
		o.Lines = (o.Columns + workers - 1) / workers
	}
	if o.Words == 0 || o.Words > o.Columns {
		o.Words = o.Columns
	}
	return o, nil
}

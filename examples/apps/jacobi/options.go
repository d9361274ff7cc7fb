package jacobi

import (
	"errors"
	"fmt"
)

// Root is the rank that holds the grid.
const Root = 0

// DefaultColumns is the width of the grid in upstream's example.
const DefaultColumns = 512

// MaxColumns is the maximum width of a grid. A worker holds two blocks of cells of up to 1 GiB each.
const MaxColumns = 1 << 14

// minColumns is the smallest width of a grid that has a cell inside its border.
const minColumns = 3

// tag is the tag that upstream's programs use. The cloudfpga profile does not transmit it.
const tag = 0

// Options configures a rank. It must be the same on all ranks, because upstream compiles the options into the
// programs of hosts and FPGAs.
type Options struct {
	// Columns is the width of the grid in cells; 0 means DefaultColumns.
	Columns int
	// Lines is the number of lines that a worker computes. 0 means an even share of a square grid, rounded up.
	// The last workers may then have fewer lines of the grid, or none; they compute unused lines of zeros
	// instead.
	Lines int
	// Words is the length of the longest message in words. Longer lines are split. 0 means no limit.
	Words int
}

// ErrOptions matches errors about invalid options.
var ErrOptions = errors.New("jacobi: wrong options")

// ErrMessage is wrapped by the errors that report a message that contradicts the options.
var ErrMessage = errors.New("jacobi: unexpected message")

// Check returns an error if the options are invalid for every cluster.
func (o Options) Check() error {
	_, err := o.withDefaults(2)
	return err
}

// withDefaults returns the options with defaults filled in, for a cluster with the given number of ranks.
func (o Options) withDefaults(ranks int) (Options, error) {
	if o.Columns == 0 {
		o.Columns = DefaultColumns
	}
	switch {
	case ranks < 2:
		return o, fmt.Errorf("%w: a cluster of %d has no workers", ErrOptions, ranks)
	case o.Columns < minColumns || o.Columns > MaxColumns:
		return o, fmt.Errorf("%w: %d columns: must be %d to %d", ErrOptions, o.Columns, minColumns, MaxColumns)
	case o.Lines < 0 || o.Lines > MaxColumns:
		return o, fmt.Errorf("%w: %d lines for each worker: must be 1 to %d, or 0 for an even share", ErrOptions,
			o.Lines, MaxColumns)
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

package datatype

import (
	"fmt"
	"slices"
)

// Order is the storage order of an array with several dimensions.
type Order int

// The orders of the standard.
const (
	OrderC       Order = iota // the last index varies fastest
	OrderFortran              // the first index varies fastest
)

// Distribution specifies how one dimension of an array is distributed over processes.
type Distribution int

// The distributions of the standard.
const (
	Block  Distribution = iota // one block per process
	Cyclic                     // blocks distributed in turn
	None                       // the whole dimension on every process
)

// DefaultArgument selects the standard's default block length: one block per process for Block, and 1 for Cyclic.
const DefaultArgument = -1

// dimensions returns the dimension numbers of an array. The first is that of the dimension along which memory is
// contiguous.
func (o Order) dimensions(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	if o == OrderC {
		slices.Reverse(list)
	}
	return list
}

// Subarray returns the type of a part of an array. sizes holds the array's size in each dimension, and subsizes and
// starts hold the part's size and beginning.
func Subarray(sizes, subsizes, starts []int64, order Order, of *Type) (*Type, error) {
	n := len(sizes)
	if n == 0 || len(subsizes) != n || len(starts) != n {
		return nil, fmt.Errorf("%w: %d sizes, %d subsizes, %d starts", ErrArgument, n, len(subsizes), len(starts))
	}
	a := array{t: of, elementStride: of.Extent()}
	for _, d := range order.dimensions(n) {
		if sizes[d] < 1 || subsizes[d] < 1 || starts[d] < 0 || starts[d] > sizes[d]-subsizes[d] {
			return nil, fmt.Errorf("%w: %d elements from %d on, of a dimension of %d", ErrArgument, subsizes[d],
				starts[d], sizes[d])
		}
		a.addDimension(sizes[d], run{starts[d], subsizes[d], 0, 1})
	}
	return a.finish(Contents{CombinerSubarray,
		slices.Concat([]int64{int64(n)}, sizes, subsizes, starts, []int64{int64(order)}), nil, []*Type{of}})
}

// Grid describes how an array is distributed over a grid of processes, from the point of view of one rank. Each slice
// has one entry per dimension.
type Grid struct {
	// The fields are the arguments of MPI_Type_create_darray, in its order: size, rank, array_of_gsizes,
	// array_of_distribs, array_of_dargs, array_of_psizes and order.
	Ranks, Rank   int64
	Sizes         []int64
	Distributions []Distribution
	Arguments     []int64
	Processes     []int64
	Order         Order
}

// Darray returns the type of the part of a distributed array that belongs to one process.
func Darray(grid *Grid, of *Type) (*Type, error) {
	n := len(grid.Sizes)
	if n == 0 || len(grid.Distributions) != n || len(grid.Arguments) != n || len(grid.Processes) != n {
		return nil, fmt.Errorf("%w: %d sizes, %d distributions, %d arguments, %d processes", ErrArgument, n,
			len(grid.Distributions), len(grid.Arguments), len(grid.Processes))
	}
	coordinates, err := grid.coordinates()
	if err != nil {
		return nil, err
	}
	a := array{t: of, elementStride: of.Extent()}
	integers := []int64{grid.Ranks, grid.Rank, int64(n)}
	for _, d := range grid.Order.dimensions(n) {
		runs, err := distributeDim(grid.Distributions[d], grid.Sizes[d], grid.Arguments[d], grid.Processes[d], coordinates[d])
		if err != nil {
			return nil, err
		}
		a.addDimension(grid.Sizes[d], runs...)
	}
	integers = append(integers, grid.Sizes...)
	for _, d := range grid.Distributions {
		integers = append(integers, int64(d))
	}
	integers = append(append(append(integers, grid.Arguments...), grid.Processes...), int64(grid.Order))
	return a.finish(Contents{CombinerDarray, integers, nil, []*Type{of}})
}

// coordinates returns the coordinates of the process in the grid. The last coordinate varies fastest.
func (g *Grid) coordinates() ([]int64, error) {
	list := make([]int64, len(g.Processes))
	rest, all := g.Rank, int64(1)
	for d := len(list) - 1; d >= 0; d-- {
		n := g.Processes[d]
		if n < 1 || all > g.Ranks/n {
			return nil, fmt.Errorf("%w: a grid of %v processes for %d ranks", ErrArgument, g.Processes, g.Ranks)
		}
		list[d], rest, all = rest%n, rest/n, all*n
	}
	if all != g.Ranks || g.Rank < 0 || g.Rank >= all {
		return nil, fmt.Errorf("%w: rank %d of %d in a grid of %v processes", ErrArgument, g.Rank, g.Ranks, g.Processes)
	}
	return list, nil
}

// run describes a block of length elements that occurs count times, at intervals of stride elements.
type run struct{ start, length, stride, count int64 }

// distributeDim returns the elements of one dimension that belong to the process whose index in this dimension is at.
func distributeDim(how Distribution, size, argument, processes, at int64) ([]run, error) {
	bad := func() error {
		return fmt.Errorf("%w: distribution %d of %d elements in blocks of %d over %d processes", ErrArgument, how,
			size, argument, processes)
	}
	if size < 1 || argument < 1 && argument != DefaultArgument && how != None {
		return nil, bad()
	}
	switch how {
	case None:
		if processes != 1 {
			return nil, bad()
		}
		return []run{{0, size, 0, 1}}, nil
	case Block:
		if argument == DefaultArgument {
			argument = (size-1)/processes + 1
		}
		if argument < (size-1)/processes+1 {
			return nil, bad()
		}
		start := min(at*argument, size)
		return []run{{start, min(argument, size-start), 0, 1}}, nil
	case Cyclic:
		if argument == DefaultArgument {
			argument = 1
		}
		if argument > size/processes+1 { // a cycle would exceed the dimension: prevent an overflow
			argument = min(argument, size)
		}
		start, stride := at*argument, processes*argument
		if start >= size {
			return []run{{0, 0, 0, 0}}, nil
		}
		full := (size - start) / stride
		runs := []run{{start, argument, stride, full}}
		if start += full * stride; start < size {
			runs = append(runs, run{start, min(argument, size-start), 0, 1})
		}
		return runs, nil
	}
	return nil, bad()
}

// array is an array type under construction. It grows by one dimension at a time.
type array struct {
	t *Type
	// elementStride is the distance between consecutive elements in bytes.
	elementStride int64
	overflow      overflow
	err           error
}

// addDimension adds a dimension of the given size. Along this dimension, the new type consists of runs of elements of
// the type as it was before.
func (a *array) addDimension(size int64, runs ...run) {
	if a.err != nil {
		return
	}
	var pieces []piece
	if a.t.Extent() != a.elementStride {
		a.t = resized(a.t, 0, a.elementStride)
	}
	for _, r := range runs {
		block, err := buildType(Contents{}, []piece{{r.length, 0, a.t}}, false)
		if err != nil {
			a.err = err
			return
		}
		if r.count > 1 {
			block = resized(block, 0, a.overflow.mul(r.stride, a.elementStride))
		}
		pieces = append(pieces, piece{r.count, a.overflow.mul(r.start, a.elementStride), block})
	}
	a.elementStride = a.overflow.mul(a.elementStride, size)
	if a.err = a.overflow.check("an array of elements of %d bytes", a.t.Extent()); a.err == nil {
		a.t, a.err = buildType(Contents{}, pieces, false)
	}
}

// finish returns the finished type. Its extent is that of the whole array.
func (a *array) finish(made Contents) (*Type, error) {
	if a.err != nil {
		return nil, a.err
	}
	t := resized(a.t, 0, a.elementStride)
	t.contents = made
	return t, nil
}

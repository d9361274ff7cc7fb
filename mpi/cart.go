package mpi

import (
	"context"
	"slices"
)

// cart is a Cartesian topology.
type cart struct {
	dims    []int
	periods []bool
}

func (*cart) kind() Topology { return Cartesian }

// CartCreate returns a communicator with a Cartesian topology (MPI_Cart_create, section 8.5.1). The topology is
// a grid of len(dims) dimensions, in row-major order. A dimension whose entry in periods is set is a ring. All
// members of c call it with the same arguments; ranks outside the grid get nil. With no dimensions, the grid is
// a single rank.
//
// reorder permits the library to renumber the ranks so that neighbours are near each other; the current
// implementation never does.
//
// The error is ErrDims if a dimension is not positive or the grid is larger than c, and ErrArg if the numbers
// of periods and dimensions differ. CartCreate has the same requirements on c as Split.
func (c *Comm) CartCreate(ctx context.Context, dims []int, periods []bool, reorder bool) (*Comm, error) {
	const op = "CartCreate"
	k := c.newCall(op)
	n, err := k.checkGrid(dims, periods)
	if err != nil {
		return nil, c.failCreation(err)
	}
	_ = reorder // ranks are never reordered
	grid, err := c.firstRanks(ctx, op, n)
	if grid != nil {
		grid.topology = &cart{slices.Clone(dims), slices.Clone(periods)}
	}
	return grid, err
}

// checkGrid returns the number of ranks in a grid. It returns an error if the grid is larger than the communicator.
func (k *call) checkGrid(dims []int, periods []bool) (int, error) {
	if err := k.checkIntra(); err != nil {
		return 0, err
	}
	if len(dims) != len(periods) {
		return 0, k.failf(ErrArg, "there are %d dimensions and %d periods", len(dims), len(periods))
	}
	n, size := 1, k.comm.Size()
	for i, d := range dims {
		if d <= 0 {
			return 0, k.failf(ErrDims, "dimension %d is %d: it is 1 or more", i, d)
		}
		if n > size/d {
			return 0, k.failf(ErrDims, "a grid of %v is larger than %v, which has %d ranks", dims, k.comm, size)
		}
		n *= d
	}
	return n, nil
}

// firstRanks returns a communicator of the first n ranks of c. It returns nil on the other ranks.
func (c *Comm) firstRanks(ctx context.Context, op string, n int) (*Comm, error) {
	color := 0
	if c.rank >= n {
		color = Undefined
	}
	return c.split(ctx, op, color, 0)
}

// CartMap returns the rank that CartCreate with reorder would give the calling rank, or Undefined if that rank would be
// outside the grid (MPI_Cart_map). The call is local.
func (c *Comm) CartMap(dims []int, periods []bool) (int, error) {
	k := c.newCall("CartMap")
	n, err := k.checkGrid(dims, periods)
	if err != nil || c.rank >= n {
		return Undefined, err
	}
	return c.rank, nil
}

// Cart returns the grid and the coordinates of the calling rank (MPI_Cart_get, MPI_Cartdim_get). Like the other methods
// for grids, it returns ErrTopology if c has no grid.
func (c *Comm) Cart() (dims []int, periods []bool, coords []int, err error) {
	k := c.newCall("Cart")
	t, err := topologyOf[*cart](&k)
	if err != nil {
		return nil, nil, nil, err
	}
	return slices.Clone(t.dims), slices.Clone(t.periods), t.coords(c.rank), nil
}

// CartRank returns the rank with the given coordinates (MPI_Cart_rank). In a ring, a coordinate is taken modulo
// the ring's length; in any other dimension, the error is ErrArg if the coordinate is outside the grid.
// Coordinates beyond the number of dimensions are ignored.
func (c *Comm) CartRank(coords []int) (int, error) {
	k := c.newCall("CartRank")
	t, err := topologyOf[*cart](&k)
	if err != nil {
		return Undefined, err
	}
	if len(coords) < len(t.dims) {
		return Undefined, k.failf(ErrDims, "there are %d coordinates for %d dimensions", len(coords), len(t.dims))
	}
	rank := 0
	for i, d := range t.dims {
		at := coords[i]
		if t.periods[i] {
			at = modulo(at, d)
		} else if at < 0 || at >= d {
			return Undefined, k.failf(ErrArg, "coordinate %d is %d: it is 0 to %d", i, at, d-1)
		}
		rank = rank*d + at
	}
	return rank, nil
}

// CartCoords returns the coordinates of a rank (MPI_Cart_coords).
func (c *Comm) CartCoords(rank int) ([]int, error) {
	k := c.newCall("CartCoords")
	t, err := topologyOf[*cart](&k)
	if err != nil {
		return nil, err
	}
	if rank < 0 || rank >= c.Size() {
		return nil, k.rankError(rank)
	}
	return t.coords(rank), nil
}

// coords returns the coordinates of a rank. Ranks are in row-major order, as the standard requires: the last coordinate
// changes fastest.
func (t *cart) coords(rank int) []int {
	coords := make([]int, len(t.dims))
	for i := len(t.dims) - 1; i >= 0; i-- {
		coords[i] = rank % t.dims[i]
		rank /= t.dims[i]
	}
	return coords
}

// modulo returns the non-negative remainder of n divided by d.
func modulo(n, d int) int {
	if n %= d; n < 0 {
		n += d
	}
	return n
}

// CartShift returns the ranks for a Sendrecv along a dimension (MPI_Cart_shift): source is displacement steps
// behind the calling rank, and dest is displacement steps ahead of it. A rank beyond an edge is ProcNull. The
// error is ErrDims if the dimension does not exist.
func (c *Comm) CartShift(dimension, displacement int) (source, dest int, err error) {
	k := c.newCall("CartShift")
	t, err := topologyOf[*cart](&k)
	if err != nil {
		return ProcNull, ProcNull, err
	}
	if dimension < 0 || dimension >= len(t.dims) {
		return ProcNull, ProcNull, k.failf(ErrDims, "there is no dimension %d: the grid has %d", dimension, len(t.dims))
	}
	if d := t.dims[dimension]; t.periods[dimension] {
		displacement %= d
	} else {
		displacement = max(-d, min(displacement, d))
	}
	return t.neighborAt(c.rank, dimension, -displacement), t.neighborAt(c.rank, dimension, displacement), nil
}

// neighborAt returns the rank whose position is by steps away from rank's in a dimension. The number by must not exceed
// the size of the dimension.
func (t *cart) neighborAt(rank, dimension, by int) int {
	stride := 1
	for _, d := range t.dims[dimension+1:] {
		stride *= d
	}
	d := t.dims[dimension]
	from := rank / stride % d
	to := from + by
	if t.periods[dimension] {
		to = modulo(to, d)
	} else if to < 0 || to >= d {
		return ProcNull
	}
	return rank + (to-from)*stride
}

// neighbours returns the calling rank's lower and upper neighbour in each dimension.
func (t *cart) neighbours(rank int) (sources, destinations []int) {
	both := make([]int, 0, 2*len(t.dims))
	for i := range t.dims {
		both = append(both, t.neighborAt(rank, i, -1), t.neighborAt(rank, i, 1))
	}
	return both, both
}

// CartSub returns a communicator of the calling rank's subgrid (MPI_Cart_sub). The subgrid has the dimensions
// whose entries in remain are set. All members call it with the same arguments. The error is ErrDims if remain
// has the wrong length.
func (c *Comm) CartSub(ctx context.Context, remain []bool) (*Comm, error) {
	const op = "CartSub"
	k := c.newCall(op)
	t, err := topologyOf[*cart](&k)
	if err != nil {
		return nil, err
	}
	if len(remain) != len(t.dims) {
		return nil, c.failCreation(k.failf(ErrDims, "there are %d dimensions in remain, and %d of the grid",
			len(remain), len(t.dims)))
	}
	part := &cart{}
	color := 0
	for i, at := range t.coords(c.rank) {
		if remain[i] {
			part.dims, part.periods = append(part.dims, t.dims[i]), append(part.periods, t.periods[i])
		} else {
			color = color*t.dims[i] + at
		}
	}
	sub, err := c.split(ctx, op, color, 0) // ordering by rank is ordering by coordinates
	if err != nil {
		return nil, err
	}
	sub.topology = part
	return sub, nil
}

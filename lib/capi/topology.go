package capi

import (
	"context"
	"math"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpi"
)

var _ = add(map[string]implementation{
	"Topo_test":   (*args).topoTest,
	"Dims_create": (*args).dimsCreate,

	"Cart_create": (*args).cartCreate,
	"Cart_map":    (*args).cartMap,
	"Cart_get":    (*args).cartGet,
	"Cartdim_get": (*args).cartDim,
	"Cart_rank":   (*args).cartRank,
	"Cart_coords": (*args).cartCoords,
	"Cart_shift":  (*args).cartShift,
	"Cart_sub":    (*args).cartSub,

	"Graph_create":          (*args).graphCreate,
	"Graph_map":             (*args).graphMap,
	"Graphdims_get":         (*args).graphDims,
	"Graph_get":             (*args).graphGet,
	"Graph_neighbors_count": (*args).graphCount,
	"Graph_neighbors":       (*args).graphNeighbors,

	"Dist_graph_create":          (*args).distGraphCreate,
	"Dist_graph_create_adjacent": (*args).distGraphAdjacent,
	"Dist_graph_neighbors_count": (*args).distGraphCount,
	"Dist_graph_neighbors":       (*args).distGraphNeighbors,
})

func (a *args) topoTest() error {
	c, err := a.communicator(0)
	if err != nil {
		return err
	}
	kind := a.l.abi.undefined
	if name := [...]string{mpi.NoTopology: "", mpi.Cartesian: "CART", mpi.Graph: "GRAPH", mpi.DistGraph: "DIST_GRAPH"}[c.Topology()]; name != "" {
		kind = int(a.l.abi.constants[name])
	}
	return a.setInt(1, kind)
}

func flags(list []int) []bool {
	out := make([]bool, len(list))
	for i, v := range list {
		out[i] = v != 0
	}
	return out
}

func numbers(list []bool) []int {
	out := make([]int, len(list))
	for i, v := range list {
		if v {
			out[i] = 1
		}
	}
	return out
}

func (a *args) dimsCreate() error {
	dims, err := a.countedInts(1, 2)
	if err != nil {
		return err
	}
	if err := mpi.Dims(a.int(0), dims); err != nil {
		return err
	}
	return a.setInts(2, dims)
}

// grid decodes dims and periods behind their number.
func (a *args) grid() (c *comm, dims []int, periods []bool, err error) {
	if c, err = a.communicator(0); err != nil {
		return nil, nil, nil, err
	}
	if dims, err = a.countedInts(1, 2); err != nil {
		return nil, nil, nil, err
	}
	wrap, err := a.countedInts(1, 3)
	return c, dims, flags(wrap), err
}

func (a *args) cartCreate() error {
	c, dims, periods, err := a.grid()
	if err != nil {
		return a.refuseMaking(err)
	}
	made, err := c.CartCreate(context.Background(), dims, periods, a.int(4) != 0)
	return a.setComm(5, made, err)
}

func (a *args) cartMap() error {
	c, dims, periods, err := a.grid()
	if err != nil {
		return err
	}
	r, err := c.CartMap(dims, periods)
	if err != nil {
		return err
	}
	return a.setInt(4, a.rank(r))
}

// first is at most n of a list, as the caller has room for.
func first(n int, list []int) []int { return list[:max(min(n, len(list)), 0)] }

func (a *args) cartGet() error {
	c, err := a.communicator(0)
	if err != nil {
		return err
	}
	dims, periods, coords, err := c.Cart()
	if err != nil {
		return err
	}
	n := a.int(1)
	if err := a.setInts(2, first(n, dims)); err != nil {
		return err
	}
	if err := a.setInts(3, first(n, numbers(periods))); err != nil {
		return err
	}
	return a.setInts(4, first(n, coords))
}

// cart decodes a communicator with a grid of some dimensions.
func (a *args) cart() (c *comm, dims int, err error) {
	if c, err = a.communicator(0); err != nil {
		return nil, 0, err
	}
	list, _, _, err := c.Cart()
	return c, len(list), err
}

func (a *args) cartDim() error {
	_, dims, err := a.cart()
	if err != nil {
		return err
	}
	return a.setInt(1, dims)
}

func (a *args) cartRank() error {
	c, dims, err := a.cart()
	if err != nil {
		return err
	}
	coords, err := a.ints(1, dims)
	if err != nil {
		return err
	}
	r, err := c.CartRank(coords)
	if err != nil {
		return err
	}
	return a.setInt(2, r)
}

func (a *args) cartCoords() error {
	c, err := a.communicator(0)
	if err != nil {
		return err
	}
	coords, err := c.CartCoords(a.int(1))
	if err != nil {
		return err
	}
	return a.setInts(3, first(a.int(2), coords))
}

func (a *args) cartShift() error {
	c, err := a.communicator(0)
	if err != nil {
		return err
	}
	source, dest, err := c.CartShift(a.int(1), a.int(2))
	if err != nil {
		return err
	}
	if err := a.setInt(3, a.rank(source)); err != nil {
		return err
	}
	return a.setInt(4, a.rank(dest))
}

func (a *args) cartSub() error {
	c, dims, err := a.cart()
	if err != nil {
		return err
	}
	remain, err := a.ints(1, dims)
	if err != nil {
		return a.refuseMaking(err)
	}
	made, err := c.CartSub(context.Background(), flags(remain))
	return a.setComm(2, made, err)
}

// edges decodes index and edges behind the number of nodes.
func (a *args) edges() (c *comm, index, edges []int, err error) {
	if c, err = a.communicator(0); err != nil {
		return nil, nil, nil, err
	}
	if index, err = a.countedInts(1, 2); err != nil {
		return nil, nil, nil, err
	}
	n := 0
	for _, end := range index {
		n = max(n, end)
	}
	edges, err = a.ints(3, n)
	return c, index, edges, err
}

func (a *args) graphCreate() error {
	c, index, edges, err := a.edges()
	if err != nil {
		return a.refuseMaking(err)
	}
	made, err := c.GraphCreate(context.Background(), index, edges, a.int(4) != 0)
	return a.setComm(5, made, err)
}

func (a *args) graphMap() error {
	c, index, edges, err := a.edges()
	if err != nil {
		return err
	}
	r, err := c.GraphMap(index, edges)
	if err != nil {
		return err
	}
	return a.setInt(4, a.rank(r))
}

func (a *args) graphDims() error {
	c, err := a.communicator(0)
	if err != nil {
		return err
	}
	index, edges, err := c.Graph()
	if err != nil {
		return err
	}
	if err := a.setInt(1, len(index)); err != nil {
		return err
	}
	return a.setInt(2, len(edges))
}

func (a *args) graphGet() error {
	c, err := a.communicator(0)
	if err != nil {
		return err
	}
	index, edges, err := c.Graph()
	if err != nil {
		return err
	}
	if err := a.setInts(3, first(a.int(1), index)); err != nil {
		return err
	}
	return a.setInts(4, first(a.int(2), edges))
}

// neighborsOf are those of a rank in a graph.
func (a *args) neighborsOf() ([]int, error) {
	c, err := a.communicator(0)
	if err != nil {
		return nil, err
	}
	return c.GraphNeighbors(a.int(1))
}

func (a *args) graphCount() error {
	list, err := a.neighborsOf()
	if err != nil {
		return err
	}
	return a.setInt(2, len(list))
}

func (a *args) graphNeighbors() error {
	list, err := a.neighborsOf()
	if err != nil {
		return err
	}
	return a.setInts(3, first(a.int(2), list))
}

// weights reads the weights of n edges, or none if the graph has no weights.
func (a *args) weights(i, n int) ([]int, error) {
	switch int64(a.list[i]) {
	case a.l.abi.constants["UNWEIGHTED"]:
		return nil, nil
	case a.l.abi.constants["WEIGHTS_EMPTY"]:
		return []int{}, nil
	}
	return a.ints(i, n)
}

// distGraphCreate: comm, n, sources, degrees, destinations, weights, info, reorder, new communicator.
func (a *args) distGraphCreate() error {
	c, err := a.communicator(0)
	if err != nil {
		return err
	}
	e, err := a.distributed()
	if err != nil {
		mpi.Foreign.Refuse(c.Comm, coll.Alltoall, classOf(err)) // with which it begins
		return err
	}
	made, err := c.DistGraphCreate(context.Background(), e[0], e[1], e[2], e[3], a.int(7) != 0)
	return a.setComm(8, made, err)
}

// distributed decodes sources, degrees, destinations and weights.
func (a *args) distributed() (e [4][]int, err error) {
	if e[0], err = a.countedInts(1, 2); err != nil {
		return e, err
	}
	if e[1], err = a.countedInts(1, 3); err != nil {
		return e, err
	}
	n := 0
	for _, d := range e[1] {
		if d < 0 || n > math.MaxInt32-d {
			return e, errorf(mpi.ErrArg, "a source of %d edges", d)
		}
		n += d
	}
	if e[2], err = a.ints(4, n); err == nil {
		e[3], err = a.weights(5, n)
	}
	return e, err
}

// distGraphAdjacent: comm, indegree, sources, sourceweights, outdegree, destinations, destweights, info, reorder, new communicator.
func (a *args) distGraphAdjacent() error {
	c, err := a.communicator(0)
	if err != nil {
		return err
	}
	n, err := a.adjacent()
	if err != nil {
		return a.refuseMaking(err)
	}
	made, err := c.DistGraphCreateAdjacent(context.Background(), n, a.int(8) != 0)
	return a.setComm(9, made, err)
}

func (a *args) adjacent() (n mpi.Neighbors, err error) {
	if n.Sources, err = a.countedInts(1, 2); err != nil {
		return n, err
	}
	if n.SourceWeights, err = a.weights(3, len(n.Sources)); err != nil {
		return n, err
	}
	if n.Destinations, err = a.countedInts(4, 5); err == nil {
		n.DestinationWeights, err = a.weights(6, len(n.Destinations))
	}
	return n, err
}

func (a *args) distGraphCount() error {
	c, err := a.communicator(0)
	if err != nil {
		return err
	}
	n, err := c.DistGraphNeighbors()
	if err != nil {
		return err
	}
	if err := a.setInt(1, len(n.Sources)); err != nil {
		return err
	}
	if err := a.setInt(2, len(n.Destinations)); err != nil {
		return err
	}
	return a.setFlag(3, n.SourceWeights != nil)
}

func (a *args) distGraphNeighbors() error {
	c, err := a.communicator(0)
	if err != nil {
		return err
	}
	n, err := c.DistGraphNeighbors()
	if err != nil {
		return err
	}
	in, out := a.int(1), a.int(4)
	if err := a.setInts(2, first(in, n.Sources)); err != nil {
		return err
	}
	if err := a.setInts(5, first(out, n.Destinations)); err != nil {
		return err
	}
	if n.SourceWeights == nil {
		return nil
	}
	if err := a.setWeights(3, first(in, n.SourceWeights)); err != nil {
		return err
	}
	return a.setWeights(6, first(out, n.DestinationWeights))
}

func (a *args) setWeights(i int, list []int) error {
	switch int64(a.list[i]) {
	case a.l.abi.constants["UNWEIGHTED"], a.l.abi.constants["WEIGHTS_EMPTY"]:
		return nil
	}
	return a.setInts(i, list)
}

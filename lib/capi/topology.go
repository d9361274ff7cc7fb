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
	"Cartdim_get": func(a *args) { _, dims := a.cartDims(); a.setInt(1, dims) },
	"Cart_rank":   func(a *args) { c, dims := a.cartDims(); a.setInt(2, must(c.CartRank(a.intArray(1, dims)))) },
	"Cart_coords": (*args).cartCoords,
	"Cart_shift":  (*args).cartShift,
	"Cart_sub":    (*args).cartSub,

	"Graph_create":          (*args).graphCreate,
	"Graph_map":             (*args).graphMap,
	"Graphdims_get":         (*args).graphDims,
	"Graph_get":             (*args).graphGet,
	"Graph_neighbors_count": func(a *args) { a.setInt(2, len(a.neighborsOf())) },
	"Graph_neighbors":       func(a *args) { a.setInts(3, truncate(a.int(2), a.neighborsOf())) },

	"Dist_graph_create":          (*args).distGraphCreate,
	"Dist_graph_create_adjacent": (*args).distGraphAdjacent,
	"Dist_graph_neighbors_count": (*args).distGraphCount,
	"Dist_graph_neighbors":       (*args).distGraphNeighbors,
})

// topoTest implements MPI_Topo_test(comm, status).
func (a *args) topoTest() {
	c := a.communicator(0)
	kind := a.lib.abi.undefined
	if name := [...]string{mpi.NoTopology: "", mpi.Cartesian: "CART", mpi.Graph: "GRAPH",
		mpi.DistGraph: "DIST_GRAPH"}[c.Topology()]; name != "" {
		kind = int(a.lib.abi.constants[name])
	}
	a.setInt(1, kind)
}

func toBools(list []int) []bool {
	out := make([]bool, len(list))
	for i, v := range list {
		out[i] = v != 0
	}
	return out
}

func toInts(list []bool) []int {
	out := make([]int, len(list))
	for i, v := range list {
		if v {
			out[i] = 1
		}
	}
	return out
}

func (a *args) dimsCreate() {
	dims := a.countedInts(1, 2)
	check(mpi.Dims(a.int(0), dims))
	a.setInts(2, dims)
}

// cartArgs decodes a communicator, a number of dimensions, and dims and periods.
func (a *args) cartArgs() (c *comm, dims []int, periods []bool) {
	return a.communicator(0), a.countedInts(1, 2), toBools(a.countedInts(1, 3))
}

// cartCreate implements MPI_Cart_create(comm_old, ndims, dims, periods, reorder, comm_cart).
func (a *args) cartCreate() {
	var c *comm
	var dims []int
	var periods []bool
	a.decodeCreation(func() { c, dims, periods = a.cartArgs() })
	a.setComm(5, must(c.CartCreate(context.Background(), dims, periods, a.int(4) != 0)))
}

func (a *args) cartMap() {
	c, dims, periods := a.cartArgs()
	a.setInt(4, a.abiRank(must(c.CartMap(dims, periods))))
}

// truncate returns at most n elements of a list, where n is the length of the caller's array.
func truncate(n int, list []int) []int { return list[:max(min(n, len(list)), 0)] }

// cartGet implements MPI_Cart_get(comm, maxdims, dims, periods, coords).
func (a *args) cartGet() {
	dims, periods, coords, err := a.communicator(0).Cart()
	check(err)
	n := a.int(1)
	a.setInts(2, truncate(n, dims))
	a.setInts(3, truncate(n, toInts(periods)))
	a.setInts(4, truncate(n, coords))
}

// cartDims decodes a communicator with a grid, and returns its number of dimensions.
func (a *args) cartDims() (c *comm, dims int) {
	c = a.communicator(0)
	list, _, _, err := c.Cart()
	check(err)
	return c, len(list)
}

func (a *args) cartCoords() {
	c := a.communicator(0)
	coords := must(c.CartCoords(a.int(1)))
	a.setInts(3, truncate(a.int(2), coords))
}

// cartShift implements MPI_Cart_shift(comm, direction, disp, rank_source, rank_dest).
func (a *args) cartShift() {
	source, dest, err := a.communicator(0).CartShift(a.int(1), a.int(2))
	check(err)
	a.setInt(3, a.abiRank(source))
	a.setInt(4, a.abiRank(dest))
}

// cartSub implements MPI_Cart_sub(comm, remain_dims, newcomm).
func (a *args) cartSub() {
	c, dims := a.cartDims()
	var remain []int
	a.decodeCreation(func() { remain = a.intArray(1, dims) })
	a.setComm(2, must(c.CartSub(context.Background(), toBools(remain))))
}

// graphArgs decodes a communicator, a number of nodes, and index and edges.
func (a *args) graphArgs() (c *comm, index, edges []int) {
	c = a.communicator(0)
	index = a.countedInts(1, 2)
	n := 0
	for _, end := range index {
		n = max(n, end)
	}
	return c, index, a.intArray(3, n)
}

// graphCreate implements MPI_Graph_create(comm_old, nnodes, index, edges, reorder, comm_graph).
func (a *args) graphCreate() {
	var c *comm
	var index, edges []int
	a.decodeCreation(func() { c, index, edges = a.graphArgs() })
	a.setComm(5, must(c.GraphCreate(context.Background(), index, edges, a.int(4) != 0)))
}

func (a *args) graphMap() {
	c, index, edges := a.graphArgs()
	a.setInt(4, a.abiRank(must(c.GraphMap(index, edges))))
}

func (a *args) graphDims() {
	index, edges, err := a.communicator(0).Graph()
	check(err)
	a.setInt(1, len(index))
	a.setInt(2, len(edges))
}

// graphGet implements MPI_Graph_get(comm, maxindex, maxedges, index, edges).
func (a *args) graphGet() {
	index, edges, err := a.communicator(0).Graph()
	check(err)
	a.setInts(3, truncate(a.int(1), index))
	a.setInts(4, truncate(a.int(2), edges))
}

// neighborsOf returns the neighbours that a rank has in a graph.
func (a *args) neighborsOf() []int { return must(a.communicator(0).GraphNeighbors(a.int(1))) }

// weights reads the weights of n edges, or returns nil if the graph has no weights.
func (a *args) weights(i, n int) []int {
	switch int64(a.list[i]) {
	case a.lib.abi.constants["UNWEIGHTED"]:
		return nil
	case a.lib.abi.constants["WEIGHTS_EMPTY"]:
		return []int{}
	}
	return a.intArray(i, n)
}

// distGraphCreate implements MPI_Dist_graph_create(comm, n, sources, degrees, destinations, weights, info, reorder,
// newcomm).
func (a *args) distGraphCreate() {
	c := a.communicator(0)
	var e [4][]int
	err := attempt(func() { e = a.distGraphArgs() })
	if err != nil {
		mpi.Foreign.RefuseCollective(c.Comm, coll.Alltoall, classOf(err)) // the first collective that the call makes
	}
	check(err)
	a.setComm(8, must(c.DistGraphCreate(context.Background(), e[0], e[1], e[2], e[3], a.int(7) != 0)))
}

// distGraphArgs decodes sources, degrees, destinations and weights.
func (a *args) distGraphArgs() (e [4][]int) {
	e[0], e[1] = a.countedInts(1, 2), a.countedInts(1, 3)
	n := 0
	for _, d := range e[1] {
		if d < 0 || n > math.MaxInt32-d {
			panic(failf(mpi.ErrArg, "a source of %d edges", d))
		}
		n += d
	}
	e[2], e[3] = a.intArray(4, n), a.weights(5, n)
	return e
}

// distGraphAdjacent implements MPI_Dist_graph_create_adjacent(comm, indegree, sources, sourceweights, outdegree,
// destinations, destweights, info, reorder, newcomm).
func (a *args) distGraphAdjacent() {
	c := a.communicator(0)
	var n mpi.Neighbors
	a.decodeCreation(func() { n = a.neighborArgs() })
	a.setComm(9, must(c.DistGraphCreateAdjacent(context.Background(), n, a.int(8) != 0)))
}

// neighborArgs decodes indegree, sources, sourceweights, outdegree, destinations and destweights, from argument 1 on.
func (a *args) neighborArgs() (n mpi.Neighbors) {
	n.Sources = a.countedInts(1, 2)
	n.SourceWeights = a.weights(3, len(n.Sources))
	n.Destinations = a.countedInts(4, 5)
	n.DestinationWeights = a.weights(6, len(n.Destinations))
	return n
}

// distGraphCount implements MPI_Dist_graph_neighbors_count(comm, indegree, outdegree, weighted).
func (a *args) distGraphCount() {
	c := a.communicator(0)
	n := must(c.DistGraphNeighbors())
	a.setInt(1, len(n.Sources))
	a.setInt(2, len(n.Destinations))
	a.setFlag(3, n.SourceWeights != nil)
}

// distGraphNeighbors implements MPI_Dist_graph_neighbors(comm, maxindegree, sources, sourceweights, maxoutdegree,
// destinations, destweights).
func (a *args) distGraphNeighbors() {
	c := a.communicator(0)
	n := must(c.DistGraphNeighbors())
	in, out := a.int(1), a.int(4)
	a.setInts(2, truncate(in, n.Sources))
	a.setInts(5, truncate(out, n.Destinations))
	if n.SourceWeights == nil {
		return
	}
	a.setWeights(3, truncate(in, n.SourceWeights))
	a.setWeights(6, truncate(out, n.DestinationWeights))
}

// setWeights writes weights, unless the argument is MPI_UNWEIGHTED or MPI_WEIGHTS_EMPTY instead of an array.
func (a *args) setWeights(i int, list []int) {
	switch int64(a.list[i]) {
	case a.lib.abi.constants["UNWEIGHTED"], a.lib.abi.constants["WEIGHTS_EMPTY"]:
		return
	}
	a.setInts(i, list)
}

package mpi

import (
	"context"
	"slices"
)

// graph is a topology whose edges all ranks know.
type graph struct{ index, edges []int }

func (*graph) kind() Topology { return Graph }

// neighborsOf returns the neighbours of a rank.
func (t *graph) neighborsOf(rank int) []int {
	from := 0
	if rank > 0 {
		from = t.index[rank-1]
	}
	return t.edges[from:t.index[rank]]
}

func (t *graph) neighbours(rank int) (sources, destinations []int) {
	return t.neighborsOf(rank), t.neighborsOf(rank)
}

// GraphCreate returns a communicator whose topology is a graph of len(index) ranks (MPI_Graph_create, section
// 8.5.3). The neighbours of rank i are edges[index[i-1]:index[i]], where index[-1] counts as 0. All members of
// c call it with the same arguments. Ranks outside the graph get nil; if the graph is empty, all ranks do.
// reorder has the same meaning as for CartCreate.
//
// The error is ErrTopology if the graph is larger than c, or if index or edges are inconsistent. GraphCreate
// has the same requirements on c as Split.
func (c *Comm) GraphCreate(ctx context.Context, index, edges []int, reorder bool) (*Comm, error) {
	const op = "GraphCreate"
	k := c.newCall(op)
	if err := k.checkGraph(index, edges); err != nil {
		return nil, c.failCreation(err)
	}
	_ = reorder // ranks are never reordered
	g, err := c.firstRanks(ctx, op, len(index))
	if g != nil {
		g.topology = &graph{slices.Clone(index), slices.Clone(edges)}
	}
	return g, err
}

// checkGraph returns an error if the graph is invalid.
func (k *call) checkGraph(index, edges []int) error {
	if err := k.checkIntra(); err != nil {
		return err
	}
	n := len(index)
	if n > k.comm.Size() {
		return k.failf(ErrTopology, "a graph of %d ranks is larger than %v, which has %d", n, k.comm, k.comm.Size())
	}
	last := 0
	for i, at := range index {
		if at < last || at > len(edges) {
			return k.failf(ErrTopology, "index %d is %d: it is %d to %d, the number of edges", i, at, last, len(edges))
		}
		last = at
	}
	if last != len(edges) {
		return k.failf(ErrTopology, "there are %d edges, and the last index is %d", len(edges), last)
	}
	for i, to := range edges {
		if to < 0 || to >= n {
			return k.failf(ErrTopology, "edge %d leads to rank %d: the graph has ranks 0 to %d", i, to, n-1)
		}
	}
	return nil
}

// GraphMap returns the rank that GraphCreate with reorder would give the calling rank, or Undefined if that rank would
// be outside the graph (MPI_Graph_map). The call is local.
func (c *Comm) GraphMap(index, edges []int) (int, error) {
	k := c.newCall("GraphMap")
	if err := k.checkGraph(index, edges); err != nil || c.rank >= len(index) {
		return Undefined, err
	}
	return c.rank, nil
}

// Graph returns the graph passed to GraphCreate (MPI_Graph_get, MPI_Graphdims_get). The error is ErrTopology if c has
// no graph.
func (c *Comm) Graph() (index, edges []int, err error) {
	k := c.newCall("Graph")
	t, err := topologyOf[*graph](&k)
	if err != nil {
		return nil, nil, err
	}
	return slices.Clone(t.index), slices.Clone(t.edges), nil
}

// GraphNeighbors returns the neighbours of a rank (MPI_Graph_neighbors, MPI_Graph_neighbors_count).
func (c *Comm) GraphNeighbors(rank int) ([]int, error) {
	k := c.newCall("GraphNeighbors")
	t, err := topologyOf[*graph](&k)
	if err != nil {
		return nil, err
	}
	if rank < 0 || rank >= c.Size() {
		return nil, k.rankError(rank)
	}
	return slices.Clone(t.neighborsOf(rank)), nil
}

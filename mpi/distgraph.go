package mpi

import (
	"context"
	"math"
	"slices"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// Neighbors holds the edges of a rank in a distributed graph: the sources of incoming edges and the destinations of
// outgoing ones.
type Neighbors struct {
	Sources, Destinations []int
	// SourceWeights and DestinationWeights hold one non-negative weight per edge. They are nil in a graph
	// without weights (MPI_UNWEIGHTED). In a graph with weights, a rank without edges passes empty slices
	// (MPI_WEIGHTS_EMPTY).
	SourceWeights, DestinationWeights []int
}

// distGraph is a topology in which each rank knows only its own edges.
type distGraph struct{ Neighbors }

func (*distGraph) kind() Topology { return DistGraph }

func (t *distGraph) neighbours(int) (sources, destinations []int) {
	return t.Sources, t.Destinations
}

func (n *Neighbors) clone() Neighbors {
	return Neighbors{slices.Clone(n.Sources), slices.Clone(n.Destinations), slices.Clone(n.SourceWeights),
		slices.Clone(n.DestinationWeights)}
}

// DistGraphCreateAdjacent returns a communicator with the ranks of c and a distributed graph as its topology.
// Each rank passes all its incoming and outgoing edges (MPI_Dist_graph_create_adjacent, section 8.5.4). All
// members of c call it. Both ranks of an edge pass it, with the same weight. This is not checked: if only one
// of them passes an edge, neighbourhood collectives block.
//
// reorder has the same meaning as for CartCreate. The error is ErrRank if a rank does not exist, and ErrArg if
// the number of weights is wrong or a weight is negative. DistGraphCreateAdjacent has the same requirements on
// c as Dup.
func (c *Comm) DistGraphCreateAdjacent(ctx context.Context, neighbors Neighbors, reorder bool) (*Comm, error) {
	const op = "DistGraphCreateAdjacent"
	k := c.newCall(op)
	if err := k.checkIntra(); err != nil {
		return nil, err
	}
	if (neighbors.SourceWeights == nil) != (neighbors.DestinationWeights == nil) {
		return nil, c.failCreation(k.failf(ErrArg, "only sources or only destinations have weights"))
	}
	if err := k.checkEdges("source", neighbors.Sources, neighbors.SourceWeights); err != nil {
		return nil, c.failCreation(err)
	}
	if err := k.checkEdges("destination", neighbors.Destinations, neighbors.DestinationWeights); err != nil {
		return nil, c.failCreation(err)
	}
	return c.newDistGraph(ctx, op, neighbors.clone(), reorder)
}

// checkEdges returns an error if the ranks or weights at one end of the edges are invalid.
func (k *call) checkEdges(name string, ranks, weights []int) error {
	if weights != nil && len(weights) != len(ranks) {
		return k.failf(ErrArg, "there are %d weights for %d edges of a %s", len(weights), len(ranks), name)
	}
	for i, r := range ranks {
		if r < 0 || r >= k.comm.Size() {
			return k.rankError(r)
		}
		if weights != nil && weights[i] < 0 {
			return k.failf(ErrArg, "the weight of %s %d is %d: it is 0 or more", name, i, weights[i])
		}
	}
	return nil
}

// newDistGraph makes a communicator with a distributed graph. Each rank stores its own edges only, and does not check
// that they fit the edges of its neighbours.
func (c *Comm) newDistGraph(ctx context.Context, op string, neighbors Neighbors, reorder bool) (*Comm, error) {
	_ = reorder // ranks are never reordered
	number, _, err := c.agree(ctx, op, 0, 0)
	if err != nil {
		return nil, err
	}
	g := c.proc.newIntracomm(number, c.group, "")
	g.topology = &distGraph{neighbors}
	return g, nil
}

// DistGraphCreate returns a communicator with the ranks of c and a distributed graph as its topology. Each rank
// may pass any edges (MPI_Dist_graph_create, section 8.5.4): degrees[i] edges lead from sources[i] to the next
// entries of destinations. Each edge is passed by only one rank. weights holds one weight per edge, or is nil
// on all ranks in a graph without weights (MPI_UNWEIGHTED). All members of c call it.
//
// DistGraphNeighbors returns neighbours in the order of the ranks that passed the edges. reorder and the errors
// are the same as for DistGraphCreateAdjacent; inconsistent degrees are also ErrArg.
func (c *Comm) DistGraphCreate(ctx context.Context, sources, degrees, destinations, weights []int, reorder bool) (*Comm,
	error) {
	const op = "DistGraphCreate"
	k := c.newCall(op)
	if err := k.checkIntra(); err != nil {
		return nil, err
	}
	if err := k.checkDistGraph(sources, degrees, destinations, weights); err != nil {
		c.rejectCollective(coll.Alltoall, ClassOf(err)) // the first collective that the call makes
		return nil, err
	}
	a := c.newAgreement(k, c.group.ranks, 0)
	if err := a.check(); err != nil {
		return nil, err
	}
	n, err := c.exchangeEdges(ctx, sources, degrees, destinations, weights)
	if err != nil {
		return nil, err
	}
	return c.newDistGraph(ctx, op, n, reorder)
}

// checkDistGraph checks the edges of DistGraphCreate.
func (k *call) checkDistGraph(sources, degrees, destinations, weights []int) error {
	if err := k.checkEdges("source", sources, nil); err != nil {
		return err
	}
	if err := k.checkEdges("destination", destinations, weights); err != nil {
		return err
	}
	if len(degrees) != len(sources) {
		return k.failf(ErrArg, "there are %d degrees for %d sources", len(degrees), len(sources))
	}
	sum := 0
	for i, d := range degrees {
		if d < 0 || d > len(destinations)-sum {
			return k.failf(ErrArg, "degree %d is %d, and there are %d destinations in all", i, d, len(destinations))
		}
		sum += d
	}
	if sum != len(destinations) {
		return k.failf(ErrArg, "the degrees add up to %d, and there are %d destinations", sum, len(destinations))
	}
	return nil
}

// An edge is sent to a rank as three numbers: the edge's direction, the rank at its other end, and its weight.
const (
	edgeIncoming = 0
	edgeOutgoing = 1
	edgeWords    = 3
)

// exchangeEdges sends each edge to the ranks at both of its ends, and returns the edges of the calling rank.
func (c *Comm) exchangeEdges(ctx context.Context, sources, degrees, destinations, weights []int) (neighbors Neighbors,
	err error) {
	to := make([][]int64, c.Size())
	next := 0
	for i, s := range sources {
		for range degrees[i] {
			d, w := destinations[next], 0
			if weights != nil {
				w = weights[next]
			}
			to[s] = append(to[s], edgeOutgoing, int64(d), int64(w))
			to[d] = append(to[d], edgeIncoming, int64(s), int64(w))
			next++
		}
	}
	counts, wanted := make([]int64, len(to)), make([]int64, len(to))
	for i, x := range to {
		counts[i] = int64(len(x))
	}
	if err := Alltoall(ctx, c, counts, wanted); err != nil {
		return neighbors, err
	}
	sendcounts, recvcounts := make([]int, len(to)), make([]int, len(to))
	total := 0
	for i := range to {
		if wanted[i] < 0 || wanted[i] > math.MaxInt32 || wanted[i]%edgeWords != 0 {
			k := c.newCall("DistGraphCreate")
			return neighbors, k.failf(ErrIntern,
				"rank %d sends %d numbers, which are not edges: not all members made the same call", i, wanted[i])
		}
		sendcounts[i], recvcounts[i] = int(counts[i]), int(wanted[i])
		total += recvcounts[i]
	}
	got := make([]int64, total)
	if err := Alltoallv(ctx, c, slices.Concat(to...), sendcounts, nil, got, recvcounts, nil); err != nil {
		return neighbors, err
	}
	if weights != nil {
		neighbors.SourceWeights, neighbors.DestinationWeights = []int{}, []int{}
	}
	for e := range slices.Chunk(got, edgeWords) {
		ranks, ws := &neighbors.Sources, &neighbors.SourceWeights
		if e[0] == edgeOutgoing {
			ranks, ws = &neighbors.Destinations, &neighbors.DestinationWeights
		}
		*ranks = append(*ranks, int(e[1]))
		if weights != nil {
			*ws = append(*ws, int(e[2]))
		}
	}
	return neighbors, nil
}

// DistGraphNeighbors returns the edges of the calling rank (MPI_Dist_graph_neighbors,
// MPI_Dist_graph_neighbors_count). After DistGraphCreateAdjacent, these are exactly the edges that the rank
// passed. The error is ErrTopology if c has no distributed graph.
func (c *Comm) DistGraphNeighbors() (Neighbors, error) {
	k := c.newCall("DistGraphNeighbors")
	t, err := topologyOf[*distGraph](&k)
	if err != nil {
		return Neighbors{}, err
	}
	return t.clone(), nil
}

package mpi

// Topology is the kind of a communicator's virtual topology (MPI_Topo_test, section 8.5.5).
type Topology uint8

// The topologies.
const (
	NoTopology Topology = iota // MPI_UNDEFINED
	Cartesian
	Graph
	DistGraph
)

// String is the standard's name of the topology.
func (t Topology) String() string {
	names := [...]string{"MPI_UNDEFINED", "MPI_CART", "MPI_GRAPH", "MPI_DIST_GRAPH"}
	if int(t) >= len(names) {
		return names[0]
	}
	return names[t]
}

// topology is what a communicator knows of its neighbours. It never changes, and so duplicates share it.
type topology interface {
	kind() Topology
	// neighbours are those of a rank in the order of the standard's neighbourhood collectives (section 8.6), which may
	// be ProcNull, for the calling rank only if the graph is distributed.
	neighbours(rank int) (sources, destinations []int)
}

// Topology returns the kind of the communicator's topology (MPI_Topo_test).
func (c *Comm) Topology() Topology {
	if c == nil || c.topology == nil {
		return NoTopology
	}
	return c.topology.kind()
}

// topologyOf returns the communicator's topology if it is a T.
func topologyOf[T topology](k *call) (T, error) {
	var none T
	if err := k.check(); err != nil {
		return none, err
	}
	t, ok := k.comm.topology.(T)
	if !ok {
		return none, k.failf(ErrTopology, "%v has no such topology: it is %v", k.comm, k.comm.Topology())
	}
	return t, nil
}

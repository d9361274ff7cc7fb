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

// String returns the standard's name of the topology.
func (t Topology) String() string {
	names := [...]string{"MPI_UNDEFINED", "MPI_CART", "MPI_GRAPH", "MPI_DIST_GRAPH"}
	if int(t) >= len(names) {
		return names[0]
	}
	return names[t]
}

// topology describes the neighbours in a communicator. It is immutable, so duplicates share it.
type topology interface {
	kind() Topology
	// neighbours returns the neighbours of a rank in the order of the standard's neighbourhood collectives (section
	// 8.6). They may be ProcNull. For a distributed graph, rank must be the calling rank.
	neighbours(rank int) (sources, destinations []int)
}

// Topology returns the kind of the communicator's topology (MPI_Topo_test).
func (c *Comm) Topology() Topology {
	if c == nil || c.topology == nil {
		return NoTopology
	}
	return c.topology.kind()
}

// topologyOf returns the communicator's topology. It returns an error unless that has the type T.
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

package capi

import "github.com/zrlmpi/zrlmpid/mpi"

// neighbors decodes the communicator, and returns how many edges lead to the caller and how many start there.
func (a *args) neighbors(o *operands, i int) (in, out int) {
	c := a.communicator(i)
	o.comm = c
	switch c.Topology() {
	case mpi.Cartesian:
		dims, _, _, err := c.Cart()
		check(err)
		return 2 * len(dims), 2 * len(dims)
	case mpi.Graph:
		list := must(c.GraphNeighbors(c.Rank()))
		return len(list), len(list)
	case mpi.DistGraph:
		n := must(c.DistGraphNeighbors())
		return len(n.Sources), len(n.Destinations)
	}
	panic(failf(mpi.ErrTopology, "%v has no topology", c.Comm))
}

// neighborAllgather decodes sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm.
func (a *args) neighborAllgather(o *operands) {
	in, _ := a.neighbors(o, 6)
	o.send = a.buffer(0)
	o.recv = a.repeatedBuffer(3, int64(in))
}

// neighborAllgatherv decodes sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm.
func (a *args) neighborAllgatherv(o *operands) {
	in, _ := a.neighbors(o, 7)
	o.send = a.buffer(0)
	o.recvs = a.blocks(in, 3, 4, 5, 6)
}

// neighborAlltoall decodes sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm.
func (a *args) neighborAlltoall(o *operands) {
	in, out := a.neighbors(o, 6)
	o.send = a.repeatedBuffer(0, int64(out))
	o.recv = a.repeatedBuffer(3, int64(in))
}

// neighborAlltoallv decodes sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm.
func (a *args) neighborAlltoallv(o *operands) {
	in, out := a.neighbors(o, 8)
	o.sends = a.blocks(out, 0, 1, 2, 3)
	o.recvs = a.blocks(in, 4, 5, 6, 7)
}

// neighborAlltoallw decodes the same arguments as neighborAlltoallv, but with arrays of datatypes and 64-bit
// displacements in bytes.
func (a *args) neighborAlltoallw(o *operands) {
	in, out := a.neighbors(o, 8)
	o.sends = a.blocksOfTypes(out, 0, a.addressArray)
	o.recvs = a.blocksOfTypes(in, 4, a.addressArray)
}

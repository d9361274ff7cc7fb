package capi

import "github.com/zrlmpi/zrlmpid/mpi"

// neighbors is a communicator, and how many edges lead to the caller and from it.
func (a *args) neighbors(i int) (c *comm, in, out int, err error) {
	if c, err = a.communicator(i); err != nil {
		return nil, 0, 0, err
	}
	switch c.Topology() {
	case mpi.Cartesian:
		dims, _, _, err := c.Cart()
		return c, 2 * len(dims), 2 * len(dims), err
	case mpi.Graph:
		list, err := c.GraphNeighbors(c.Rank())
		return c, len(list), len(list), err
	case mpi.DistGraph:
		n, err := c.DistGraphNeighbors()
		return c, len(n.Sources), len(n.Destinations), err
	}
	return nil, 0, 0, errorf(mpi.ErrTopology, "%v has no topology", c.Comm)
}

// neighborAllgather: sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm.
func (a *args) neighborAllgather(o *operands) error {
	c, in, _, err := a.neighbors(6)
	if err != nil {
		return err
	}
	o.comm = c
	if o.send, err = a.buffer(0); err != nil {
		return err
	}
	o.recv, err = a.buffers(3, int64(in))
	return err
}

// neighborAllgatherv: sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm.
func (a *args) neighborAllgatherv(o *operands) error {
	c, in, _, err := a.neighbors(7)
	if err != nil {
		return err
	}
	o.comm = c
	if o.send, err = a.buffer(0); err != nil {
		return err
	}
	o.recvs, err = a.blocks(in, 3, 4, 5, 6)
	return err
}

// neighborAlltoall: sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm.
func (a *args) neighborAlltoall(o *operands) error {
	c, in, out, err := a.neighbors(6)
	if err != nil {
		return err
	}
	o.comm = c
	if o.send, err = a.buffers(0, int64(out)); err != nil {
		return err
	}
	o.recv, err = a.buffers(3, int64(in))
	return err
}

// neighborAlltoallv: sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm.
func (a *args) neighborAlltoallv(o *operands) error {
	c, in, out, err := a.neighbors(8)
	if err != nil {
		return err
	}
	o.comm = c
	if o.sends, err = a.blocks(out, 0, 1, 2, 3); err != nil {
		return err
	}
	o.recvs, err = a.blocks(in, 4, 5, 6, 7)
	return err
}

// neighborAlltoallw: the same with an array of datatypes, and displacements in bytes of 64 bits.
func (a *args) neighborAlltoallw(o *operands) error {
	c, in, out, err := a.neighbors(8)
	if err != nil {
		return err
	}
	o.comm = c
	if o.sends, err = a.blocksOfTypes(out, 0, a.addresses); err != nil {
		return err
	}
	o.recvs, err = a.blocksOfTypes(in, 4, a.addresses)
	return err
}

package capi

import (
	"context"

	"github.com/zrlmpi/zrlmpid/mpi"
)

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
func (a *args) neighborAllgather() (*comm, waitFunc, startFunc, error) {
	c, in, _, err := a.neighbors(6)
	if err != nil {
		return nil, nil, nil, err
	}
	send, err := a.buffer(0)
	if err != nil {
		return nil, nil, nil, err
	}
	recv, err := a.buffers(3, int64(in))
	return c, func(ctx context.Context) error { return c.NeighborAllgather(ctx, send, recv) },
		func() (mpi.Request, error) { return c.IneighborAllgather(send, recv) }, err
}

// neighborAllgatherv: sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm.
func (a *args) neighborAllgatherv() (*comm, waitFunc, startFunc, error) {
	c, in, _, err := a.neighbors(7)
	if err != nil {
		return nil, nil, nil, err
	}
	send, err := a.buffer(0)
	if err != nil {
		return nil, nil, nil, err
	}
	recv, err := a.blocks(in, 3, 4, 5, 6)
	return c, func(ctx context.Context) error { return c.NeighborAllgatherv(ctx, send, recv) },
		func() (mpi.Request, error) { return c.IneighborAllgatherv(send, recv) }, err
}

// neighborAlltoall: sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm.
func (a *args) neighborAlltoall() (*comm, waitFunc, startFunc, error) {
	c, in, out, err := a.neighbors(6)
	if err != nil {
		return nil, nil, nil, err
	}
	send, err := a.buffers(0, int64(out))
	if err != nil {
		return nil, nil, nil, err
	}
	recv, err := a.buffers(3, int64(in))
	return c, func(ctx context.Context) error { return c.NeighborAlltoall(ctx, send, recv) },
		func() (mpi.Request, error) { return c.IneighborAlltoall(send, recv) }, err
}

// neighborAlltoallv: sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm.
func (a *args) neighborAlltoallv() (*comm, waitFunc, startFunc, error) {
	return a.neighborBlocks(func(n, buf int) (mpi.Blocks, error) { return a.blocks(n, buf, buf+1, buf+2, buf+3) })
}

// neighborAlltoallw: the same with an array of datatypes, and displacements in bytes of 64 bits.
func (a *args) neighborAlltoallw() (*comm, waitFunc, startFunc, error) {
	return a.neighborBlocks(func(n, buf int) (mpi.Blocks, error) { return a.blocksOfTypes(n, buf, a.addresses) })
}

func (a *args) neighborBlocks(blocks func(n, buf int) (mpi.Blocks, error)) (*comm, waitFunc, startFunc, error) {
	c, in, out, err := a.neighbors(8)
	if err != nil {
		return nil, nil, nil, err
	}
	send, err := blocks(out, 0)
	if err != nil {
		return nil, nil, nil, err
	}
	recv, err := blocks(in, 4)
	return c, func(ctx context.Context) error { return c.NeighborAlltoallv(ctx, send, recv) },
		func() (mpi.Request, error) { return c.IneighborAlltoallv(send, recv) }, err
}

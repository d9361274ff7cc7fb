package capi

import (
	"context"

	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/mpi/datatype"
)

// Each collective call has a form that waits, one that begins with I and returns a request, and one that ends with
// _init and returns a persistent request, which has an info as well. They are decoded alike: a call is a function that starts it.
type collectiveCall struct {
	// decode returns what is to be started. Arguments from args on are those of the other forms: a request, or an info and a request.
	decode func(a *args) (c *comm, wait func(context.Context) error, start func() (mpi.Request, error), err error)
	args   int
}

var collectiveCalls = map[string]collectiveCall{
	"Barrier":    {(*args).barrier, 1},
	"Bcast":      {(*args).bcast, 5},
	"Gather":     {(*args).gather, 8},
	"Gatherv":    {(*args).gatherv, 9},
	"Scatter":    {(*args).scatter, 8},
	"Scatterv":   {(*args).scatterv, 9},
	"Allgather":  {(*args).allgather, 7},
	"Allgatherv": {(*args).allgatherv, 8},
	"Alltoall":   {(*args).alltoall, 7},
	"Alltoallv":  {(*args).alltoallv, 9},
	"Alltoallw":  {(*args).alltoallw, 9},
	"Reduce":     {(*args).reduce, 7},
	"Allreduce": {func(a *args) (*comm, waitFunc, startFunc, error) {
		return a.toAll((*mpi.Comm).Allreduce, (*mpi.Comm).Iallreduce)
	}, 6},
	"Scan": {func(a *args) (*comm, waitFunc, startFunc, error) { return a.toAll((*mpi.Comm).Scan, (*mpi.Comm).Iscan) }, 6},
	"Exscan": {func(a *args) (*comm, waitFunc, startFunc, error) {
		return a.toAll((*mpi.Comm).Exscan, (*mpi.Comm).Iexscan)
	}, 6},
	"Neighbor_allgather":   {(*args).neighborAllgather, 7},
	"Neighbor_allgatherv":  {(*args).neighborAllgatherv, 8},
	"Neighbor_alltoall":    {(*args).neighborAlltoall, 7},
	"Neighbor_alltoallv":   {(*args).neighborAlltoallv, 9},
	"Neighbor_alltoallw":   {(*args).neighborAlltoallw, 9},
	"Reduce_scatter":       {(*args).reduceScatter, 6},
	"Reduce_scatter_block": {(*args).reduceScatterBlock, 6},
}

type (
	waitFunc  = func(context.Context) error
	startFunc = func() (mpi.Request, error)
)

var _ = func() struct{} {
	calls := map[string]implementation{}
	for name, c := range collectiveCalls {
		calls[name] = func(a *args) error {
			_, wait, _, err := c.decode(a)
			if err != nil {
				return err
			}
			return wait(context.Background())
		}
		lower := string(name[0]|0x20) + name[1:]
		calls["I"+lower] = func(a *args) error {
			_, _, start, err := c.decode(a)
			if err != nil {
				return err
			}
			r, err := start()
			return a.newRequest(c.args, r, err, false)
		}
		calls[name+"_init"] = func(a *args) error {
			_, _, start, err := c.decode(a)
			if err != nil {
				return err
			}
			r, handle, err := a.l.requests.take()
			if err != nil {
				return err
			}
			r.persistent, r.begin, r.comm = true, start, a.comm
			return a.setHandle(c.args+1, handle) // behind an info
		}
	}
	return add(calls)
}()

func (a *args) barrier() (*comm, waitFunc, startFunc, error) {
	c, err := a.communicator(0)
	if err != nil {
		return nil, nil, nil, err
	}
	return c, func(ctx context.Context) error { return mpi.Barrier(ctx, c.Comm) }, func() (mpi.Request, error) { return mpi.Ibarrier(c.Comm) }, nil
}

// bcast: buffer, count, datatype, root, comm.
func (a *args) bcast() (*comm, waitFunc, startFunc, error) {
	c, err := a.communicator(4)
	if err != nil {
		return nil, nil, nil, err
	}
	b, err := a.buffer(0)
	if err != nil {
		return nil, nil, nil, err
	}
	root := a.rootOf(3)
	return c, func(ctx context.Context) error { return c.Bcast(ctx, b, root) }, func() (mpi.Request, error) { return c.Ibcast(b, root) }, nil
}

// contribution decodes a buffer that is sent: MPI_IN_PLACE is one.
func (a *args) contribution(i int, times int64) (mpi.Buffer, error) {
	if a.inPlace(i) {
		return mpi.InPlace, nil
	}
	return a.buffers(i, times)
}

// gather: sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm.
func (a *args) gather() (*comm, waitFunc, startFunc, error) {
	c, err := a.communicator(7)
	if err != nil {
		return nil, nil, nil, err
	}
	var send, recv mpi.Buffer
	root := a.rootOf(6)
	if send, err = a.contribution(0, 1); err == nil && c.receivesAt(root) {
		recv, err = a.buffers(3, int64(c.ranks()))
	}
	return c, func(ctx context.Context) error { return c.Gather(ctx, send, recv, root) },
		func() (mpi.Request, error) { return c.Igather(send, recv, root) }, err
}

// blocks decodes a buffer with n blocks: an address, and arrays of counts and displacements in extents.
func (a *args) blocks(n, buf, counts, displs, of int) (mpi.Blocks, error) {
	t, err := a.datatype(of)
	if err != nil {
		return mpi.Blocks{}, err
	}
	lengths, err := a.integers(counts, n)
	if err != nil {
		return mpi.Blocks{}, err
	}
	at, err := a.integers(displs, n)
	if err != nil {
		return mpi.Blocks{}, err
	}
	list := make([]mpi.Block, n)
	for i := range list {
		list[i] = mpi.Block{Count: int64(lengths[i]), Offset: int64(at[i]) * t.Extent(), Of: t.Type}
	}
	return mpi.MemoryBlocks(a.pointer(buf), list), nil
}

// blocksOfTypes is blocks for a datatype of each, with displacements in bytes. They follow each other from argument buf on.
func (a *args) blocksOfTypes(n, buf int, displacements func(i, n int) ([]int, error)) (mpi.Blocks, error) {
	lengths, err := a.integers(buf+1, n)
	if err != nil {
		return mpi.Blocks{}, err
	}
	at, err := displacements(buf+2, n)
	if err != nil {
		return mpi.Blocks{}, err
	}
	of, err := a.datatypes(buf+3, n)
	if err != nil {
		return mpi.Blocks{}, err
	}
	list := make([]mpi.Block, n)
	for i := range list {
		list[i] = mpi.Block{Count: int64(lengths[i]), Offset: int64(at[i]), Of: of[i]}
	}
	return mpi.MemoryBlocks(a.pointer(buf), list), nil
}

// gatherv: sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm.
func (a *args) gatherv() (*comm, waitFunc, startFunc, error) {
	c, err := a.communicator(8)
	if err != nil {
		return nil, nil, nil, err
	}
	var send mpi.Buffer
	var recv mpi.Blocks
	root := a.rootOf(7)
	if send, err = a.contribution(0, 1); err == nil && c.receivesAt(root) {
		recv, err = a.blocks(c.ranks(), 3, 4, 5, 6)
	}
	return c, func(ctx context.Context) error { return c.Gatherv(ctx, send, recv, root) },
		func() (mpi.Request, error) { return c.Igatherv(send, recv, root) }, err
}

// scatter: sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm.
func (a *args) scatter() (*comm, waitFunc, startFunc, error) {
	c, err := a.communicator(7)
	if err != nil {
		return nil, nil, nil, err
	}
	var send, recv mpi.Buffer
	root := a.rootOf(6)
	if recv, err = a.contribution(3, 1); err == nil && c.receivesAt(root) {
		send, err = a.buffers(0, int64(c.ranks()))
	}
	return c, func(ctx context.Context) error { return c.Scatter(ctx, send, recv, root) },
		func() (mpi.Request, error) { return c.Iscatter(send, recv, root) }, err
}

// scatterv: sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm.
func (a *args) scatterv() (*comm, waitFunc, startFunc, error) {
	c, err := a.communicator(8)
	if err != nil {
		return nil, nil, nil, err
	}
	var send mpi.Blocks
	var recv mpi.Buffer
	root := a.rootOf(7)
	if recv, err = a.contribution(4, 1); err == nil && c.receivesAt(root) {
		send, err = a.blocks(c.ranks(), 0, 1, 2, 3)
	}
	return c, func(ctx context.Context) error { return c.Scatterv(ctx, send, recv, root) },
		func() (mpi.Request, error) { return c.Iscatterv(send, recv, root) }, err
}

// allgather: sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm.
func (a *args) allgather() (*comm, waitFunc, startFunc, error) {
	c, err := a.communicator(6)
	if err != nil {
		return nil, nil, nil, err
	}
	var send, recv mpi.Buffer
	if send, err = a.contribution(0, 1); err == nil {
		recv, err = a.buffers(3, int64(c.ranks()))
	}
	return c, func(ctx context.Context) error { return c.Allgather(ctx, send, recv) },
		func() (mpi.Request, error) { return c.Iallgather(send, recv) }, err
}

// allgatherv: sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm.
func (a *args) allgatherv() (*comm, waitFunc, startFunc, error) {
	c, err := a.communicator(7)
	if err != nil {
		return nil, nil, nil, err
	}
	var send mpi.Buffer
	var recv mpi.Blocks
	if send, err = a.contribution(0, 1); err == nil {
		recv, err = a.blocks(c.ranks(), 3, 4, 5, 6)
	}
	return c, func(ctx context.Context) error { return c.Allgatherv(ctx, send, recv) },
		func() (mpi.Request, error) { return c.Iallgatherv(send, recv) }, err
}

// alltoall: sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm.
func (a *args) alltoall() (*comm, waitFunc, startFunc, error) {
	c, err := a.communicator(6)
	if err != nil {
		return nil, nil, nil, err
	}
	var send, recv mpi.Buffer
	if send, err = a.contribution(0, int64(c.ranks())); err == nil {
		recv, err = a.buffers(3, int64(c.ranks()))
	}
	return c, func(ctx context.Context) error { return c.Alltoall(ctx, send, recv) },
		func() (mpi.Request, error) { return c.Ialltoall(send, recv) }, err
}

// alltoallv: sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm.
func (a *args) alltoallv() (*comm, waitFunc, startFunc, error) {
	return a.exchange(func(c *comm, buf int) (mpi.Blocks, error) { return a.blocks(c.ranks(), buf, buf+1, buf+2, buf+3) })
}

// alltoallw: the same with an array of datatypes, and displacements in bytes: those of MPI_Alltoallw_c have 64 bits.
func (a *args) alltoallw() (*comm, waitFunc, startFunc, error) {
	return a.exchange(func(c *comm, buf int) (mpi.Blocks, error) { return a.blocksOfTypes(c.ranks(), buf, a.integers) })
}

func (a *args) exchange(blocks func(c *comm, buf int) (mpi.Blocks, error)) (*comm, waitFunc, startFunc, error) {
	c, err := a.communicator(8)
	if err != nil {
		return nil, nil, nil, err
	}
	send := mpi.InPlaceBlocks
	if !a.inPlace(0) {
		if send, err = blocks(c, 0); err != nil {
			return nil, nil, nil, err
		}
	}
	recv, err := blocks(c, 4)
	return c, func(ctx context.Context) error { return c.Alltoallv(ctx, send, recv) },
		func() (mpi.Request, error) { return c.Ialltoallv(send, recv) }, err
}

// reductionBuffers decodes sendbuf, recvbuf, count, datatype and op, which follow each other.
func (a *args) reductionBuffers(receives bool) (send, recv mpi.Buffer, op mpi.Op, err error) {
	op, of, err := a.reduction()
	if err != nil {
		return send, recv, op, err
	}
	n := a.count(2)
	if n < 0 {
		return send, recv, op, errorf(mpi.ErrCount, "the count is %d", n)
	}
	send, recv = a.reduced(0, n, of), mpi.Buffer{}
	if receives {
		recv = mpi.Memory(a.pointer(1), n, of)
	}
	return send, recv, op, nil
}

func (a *args) reduced(i int, n int64, of *datatype.Type) mpi.Buffer {
	if a.inPlace(i) {
		return mpi.InPlace
	}
	return mpi.Memory(a.pointer(i), n, of)
}

// reduce: sendbuf, recvbuf, count, datatype, op, root, comm.
func (a *args) reduce() (*comm, waitFunc, startFunc, error) {
	c, err := a.communicator(6)
	if err != nil {
		return nil, nil, nil, err
	}
	root := a.rootOf(5)
	send, recv, op, err := a.reductionBuffers(c.receivesAt(root))
	return c, func(ctx context.Context) error { return c.Reduce(ctx, send, recv, op, root) },
		func() (mpi.Request, error) { return c.Ireduce(send, recv, op, root) }, err
}

// toAll: sendbuf, recvbuf, count, datatype, op, comm.
func (a *args) toAll(do func(*mpi.Comm, context.Context, mpi.Buffer, mpi.Buffer, mpi.Op, ...mpi.Option) error,
	begin func(*mpi.Comm, mpi.Buffer, mpi.Buffer, mpi.Op, ...mpi.Option) (mpi.Request, error)) (*comm, waitFunc, startFunc, error) {
	c, err := a.communicator(5)
	if err != nil {
		return nil, nil, nil, err
	}
	send, recv, op, err := a.reductionBuffers(true)
	return c, func(ctx context.Context) error { return do(c.Comm, ctx, send, recv, op) },
		func() (mpi.Request, error) { return begin(c.Comm, send, recv, op) }, err
}

// reduceScatter: sendbuf, recvbuf, recvcounts, datatype, op, comm.
func (a *args) reduceScatter() (*comm, waitFunc, startFunc, error) {
	c, err := a.communicator(5)
	if err != nil {
		return nil, nil, nil, err
	}
	op, of, err := a.reduction()
	if err != nil {
		return nil, nil, nil, err
	}
	counts, err := a.integers(2, c.Size())
	if err != nil {
		return nil, nil, nil, err
	}
	var all int64
	for _, n := range counts {
		if n < 0 {
			return nil, nil, nil, errorf(mpi.ErrCount, "a count is %d", n)
		}
		all += int64(n)
	}
	send, recv := a.reduced(0, all, of), mpi.Memory(a.pointer(1), int64(counts[c.Rank()]), of)
	if a.inPlace(0) {
		recv = mpi.Memory(a.pointer(1), all, of)
	}
	return c, func(ctx context.Context) error { return c.ReduceScatter(ctx, send, recv, counts, op) },
		func() (mpi.Request, error) { return c.IreduceScatter(send, recv, counts, op) }, nil
}

// reduceScatterBlock: sendbuf, recvbuf, recvcount, datatype, op, comm.
func (a *args) reduceScatterBlock() (*comm, waitFunc, startFunc, error) {
	c, err := a.communicator(5)
	if err != nil {
		return nil, nil, nil, err
	}
	op, of, err := a.reduction()
	if err != nil {
		return nil, nil, nil, err
	}
	n := a.count(2)
	if n < 0 {
		return nil, nil, nil, errorf(mpi.ErrCount, "the count is %d", n)
	}
	send, recv := a.reduced(0, n*int64(c.Size()), of), mpi.Memory(a.pointer(1), n, of)
	if a.inPlace(0) {
		recv = mpi.Memory(a.pointer(1), n*int64(c.Size()), of)
	}
	return c, func(ctx context.Context) error { return c.ReduceScatterBlock(ctx, send, recv, op) },
		func() (mpi.Request, error) { return c.IreduceScatterBlock(send, recv, op) }, nil
}

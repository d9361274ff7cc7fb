package capi

import (
	"context"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/mpi/datatype"
)

// collectiveCall describes a collective call of the standard. Each call has three forms: a blocking one; one
// whose name begins with I, which returns a request; and one whose name ends in _init, which also takes an info
// and returns a persistent request. The arguments of all forms are decoded in the same way.
type collectiveCall struct {
	// kind is the collective that is reported to the other members if the call is rejected. It is 0 if they are not
	// notified.
	kind   coll.Collective
	decode func(a *args, o *operands)
	wait   func(o *operands) error
	start  func(o *operands) (mpi.Request, error)
	// requestArg is the index of the first argument that the blocking form does not have: a request, or an info and a
	// request.
	requestArg int
}

// operands holds the decoded arguments of a collective call. Each call uses only some of the fields.
type operands struct {
	*comm
	send, recv   mpi.Buffer
	sends, recvs mpi.Blocks
	counts       []int
	op           mpi.Op
	root         int
}

var collectiveCalls = map[string]collectiveCall{
	"Barrier": {coll.Barrier, (*args).barrier,
		func(o *operands) error { return mpi.Barrier(context.Background(), o.Comm) },
		func(o *operands) (mpi.Request, error) { return mpi.Ibarrier(o.Comm) }, 1},
	"Bcast": {coll.Bcast, (*args).bcast,
		func(o *operands) error { return o.Bcast(context.Background(), o.send, o.root) },
		func(o *operands) (mpi.Request, error) { return o.Ibcast(o.send, o.root) }, 5},
	"Gather": {coll.Gather, (*args).gather,
		func(o *operands) error { return o.Gather(context.Background(), o.send, o.recv, o.root) },
		func(o *operands) (mpi.Request, error) { return o.Igather(o.send, o.recv, o.root) }, 8},
	"Gatherv": {coll.Gather, (*args).gatherv,
		func(o *operands) error { return o.Gatherv(context.Background(), o.send, o.recvs, o.root) },
		func(o *operands) (mpi.Request, error) { return o.Igatherv(o.send, o.recvs, o.root) }, 9},
	"Scatter": {coll.Scatter, (*args).scatter,
		func(o *operands) error { return o.Scatter(context.Background(), o.send, o.recv, o.root) },
		func(o *operands) (mpi.Request, error) { return o.Iscatter(o.send, o.recv, o.root) }, 8},
	"Scatterv": {coll.Scatter, (*args).scatterv,
		func(o *operands) error { return o.Scatterv(context.Background(), o.sends, o.recv, o.root) },
		func(o *operands) (mpi.Request, error) { return o.Iscatterv(o.sends, o.recv, o.root) }, 9},
	"Allgather": {coll.Allgather, (*args).allgather,
		func(o *operands) error { return o.Allgather(context.Background(), o.send, o.recv) },
		func(o *operands) (mpi.Request, error) { return o.Iallgather(o.send, o.recv) }, 7},
	"Allgatherv": {coll.Allgather, (*args).allgatherv,
		func(o *operands) error { return o.Allgatherv(context.Background(), o.send, o.recvs) },
		func(o *operands) (mpi.Request, error) { return o.Iallgatherv(o.send, o.recvs) }, 8},
	"Alltoall": {coll.Alltoall, (*args).alltoall,
		func(o *operands) error { return o.Alltoall(context.Background(), o.send, o.recv) },
		func(o *operands) (mpi.Request, error) { return o.Ialltoall(o.send, o.recv) }, 7},
	"Alltoallv": {coll.Alltoall, (*args).alltoallv,
		func(o *operands) error { return o.Alltoallv(context.Background(), o.sends, o.recvs) },
		func(o *operands) (mpi.Request, error) { return o.Ialltoallv(o.sends, o.recvs) }, 9},
	"Alltoallw": {coll.Alltoall, (*args).alltoallw,
		func(o *operands) error { return o.Alltoallv(context.Background(), o.sends, o.recvs) },
		func(o *operands) (mpi.Request, error) { return o.Ialltoallv(o.sends, o.recvs) }, 9},
	"Reduce": {coll.Reduce, (*args).reduce,
		func(o *operands) error { return o.Reduce(context.Background(), o.send, o.recv, o.op, o.root) },
		func(o *operands) (mpi.Request, error) { return o.Ireduce(o.send, o.recv, o.op, o.root) }, 7},
	"Allreduce": {coll.Allreduce, (*args).allreduce,
		func(o *operands) error { return o.Allreduce(context.Background(), o.send, o.recv, o.op) },
		func(o *operands) (mpi.Request, error) { return o.Iallreduce(o.send, o.recv, o.op) }, 6},
	"Scan": {coll.Scan, (*args).allreduce,
		func(o *operands) error { return o.Scan(context.Background(), o.send, o.recv, o.op) },
		func(o *operands) (mpi.Request, error) { return o.Iscan(o.send, o.recv, o.op) }, 6},
	"Exscan": {coll.Exscan, (*args).allreduce,
		func(o *operands) error { return o.Exscan(context.Background(), o.send, o.recv, o.op) },
		func(o *operands) (mpi.Request, error) { return o.Iexscan(o.send, o.recv, o.op) }, 6},
	"Neighbor_allgather": {0, (*args).neighborAllgather,
		func(o *operands) error { return o.NeighborAllgather(context.Background(), o.send, o.recv) },
		func(o *operands) (mpi.Request, error) { return o.IneighborAllgather(o.send, o.recv) }, 7},
	"Neighbor_allgatherv": {0, (*args).neighborAllgatherv,
		func(o *operands) error { return o.NeighborAllgatherv(context.Background(), o.send, o.recvs) },
		func(o *operands) (mpi.Request, error) { return o.IneighborAllgatherv(o.send, o.recvs) }, 8},
	"Neighbor_alltoall": {0, (*args).neighborAlltoall,
		func(o *operands) error { return o.NeighborAlltoall(context.Background(), o.send, o.recv) },
		func(o *operands) (mpi.Request, error) { return o.IneighborAlltoall(o.send, o.recv) }, 7},
	"Neighbor_alltoallv": {0, (*args).neighborAlltoallv,
		func(o *operands) error { return o.NeighborAlltoallv(context.Background(), o.sends, o.recvs) },
		func(o *operands) (mpi.Request, error) { return o.IneighborAlltoallv(o.sends, o.recvs) }, 9},
	"Neighbor_alltoallw": {0, (*args).neighborAlltoallw,
		func(o *operands) error { return o.NeighborAlltoallv(context.Background(), o.sends, o.recvs) },
		func(o *operands) (mpi.Request, error) { return o.IneighborAlltoallv(o.sends, o.recvs) }, 9},
	"Reduce_scatter": {coll.ReduceScatter, (*args).reduceScatter,
		func(o *operands) error { return o.ReduceScatter(context.Background(), o.send, o.recv, o.counts, o.op) },
		func(o *operands) (mpi.Request, error) { return o.IreduceScatter(o.send, o.recv, o.counts, o.op) }, 6},
	"Reduce_scatter_block": {coll.ReduceScatter, (*args).reduceScatterBlock,
		func(o *operands) error { return o.ReduceScatterBlock(context.Background(), o.send, o.recv, o.op) },
		func(o *operands) (mpi.Request, error) { return o.IreduceScatterBlock(o.send, o.recv, o.op) }, 6},
}

var _ = func() struct{} {
	calls := map[string]implementation{}
	for name, call := range collectiveCalls {
		calls[name] = func(a *args) {
			o := a.operands
			call.failAll(o, attempt(func() { call.decode(a, o) }))
			check(call.wait(o))
		}
		lower := string(name[0]|0x20) + name[1:]
		calls["I"+lower] = func(a *args) {
			o := a.operands
			call.failAll(o, attempt(func() {
				call.decode(a, o)
				a.checkedPointer(call.requestArg)
			}))
			a.newRequest(call.requestArg, must(call.start(o)), false)
		}
		calls[name+"_init"] = func(a *args) {
			o := new(operands) // used each time the request is started, until it is freed
			call.decode(a, o)
			r, _ := newObject(a, a.lib.requests, call.requestArg+1) // the request comes after an info
			r.comm, r.ownDetails = a.comm, &requestDetails{persistent: true,
				restart: func() (mpi.Request, error) { return call.start(o) }}
		}
	}
	return add(calls)
}()

// failAll fails the call if err is not nil. It makes the calls of the other members fail too, because they would wait
// for this rank, unless the communicator is unknown.
func (c *collectiveCall) failAll(o *operands, err error) {
	if err != nil && o.comm != nil && c.kind != 0 {
		mpi.Foreign.RefuseCollective(o.Comm, c.kind, classOf(err))
	}
	check(err)
}

// barrier decodes comm.
func (a *args) barrier(o *operands) { o.comm = a.communicator(0) }

// bcast decodes buffer, count, datatype, root, comm.
func (a *args) bcast(o *operands) {
	o.comm, o.root = a.communicator(4), a.root(3)
	o.send = a.buffer(0)
}

// inputBuffer decodes a send buffer, which may be MPI_IN_PLACE.
func (a *args) inputBuffer(i int, times int64) mpi.Buffer {
	if a.inPlace(i) {
		return mpi.InPlace
	}
	return a.repeatedBuffer(i, times)
}

// gather decodes sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm.
func (a *args) gather(o *operands) {
	o.comm, o.root = a.communicator(7), a.root(6)
	o.send = a.inputBuffer(0, 1)
	if o.isRoot(o.root) {
		o.recv = a.repeatedBuffer(3, int64(o.blockCount()))
	}
}

// blocks decodes a buffer that consists of n blocks. Its arguments are an address, an array of counts, and an array of
// displacements in extents.
func (a *args) blocks(n, buf, counts, displs, of int) mpi.Blocks {
	lengths := a.countArray(counts, n)
	at := a.countArray(displs, n)
	some := 0
	for _, length := range lengths {
		some |= length
	}
	t := a.lib.messageType(int64(some), a.handle(of, kindDatatype))
	list := make([]mpi.Block, n)
	for i := range list {
		list[i] = mpi.Block{Count: int64(lengths[i]), Offset: int64(at[i]) * t.Extent(), Datatype: t}
	}
	return a.memoryBlocks(buf, list)
}

// memoryBlocks returns blocks at an address, which must not be MPI_IN_PLACE.
func (a *args) memoryBlocks(i int, list []mpi.Block) mpi.Blocks {
	a.bufferAt(i, 0, a.lib.byteType)
	return mpi.Foreign.MemoryBlocks(a.pointer(i), list)
}

// blocksOfTypes is like blocks, with a datatype for each block and displacements in bytes. Its arguments are
// consecutive, beginning at index buf.
func (a *args) blocksOfTypes(n, buf int, displacements func(i, n int) []int) mpi.Blocks {
	lengths := a.countArray(buf+1, n)
	at := displacements(buf+2, n)
	types := a.arrayAt(buf+3, n)
	list := make([]mpi.Block, n)
	for i := range list {
		of := a.lib.messageType(int64(lengths[i]), a.lib.handleAt(types, i))
		list[i] = mpi.Block{Count: int64(lengths[i]), Offset: int64(at[i]), Datatype: of}
	}
	return a.memoryBlocks(buf, list)
}

// gatherv decodes sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm.
func (a *args) gatherv(o *operands) {
	o.comm, o.root = a.communicator(8), a.root(7)
	o.send = a.inputBuffer(0, 1)
	if o.isRoot(o.root) {
		o.recvs = a.blocks(o.blockCount(), 3, 4, 5, 6)
	}
}

// scatter decodes sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm.
func (a *args) scatter(o *operands) {
	o.comm, o.root = a.communicator(7), a.root(6)
	o.recv = a.inputBuffer(3, 1)
	if o.isRoot(o.root) {
		o.send = a.repeatedBuffer(0, int64(o.blockCount()))
	}
}

// scatterv decodes sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm.
func (a *args) scatterv(o *operands) {
	o.comm, o.root = a.communicator(8), a.root(7)
	o.recv = a.inputBuffer(4, 1)
	if o.isRoot(o.root) {
		o.sends = a.blocks(o.blockCount(), 0, 1, 2, 3)
	}
}

// allgather decodes sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm.
func (a *args) allgather(o *operands) {
	o.comm = a.communicator(6)
	o.send = a.inputBuffer(0, 1)
	o.recv = a.repeatedBuffer(3, int64(o.blockCount()))
}

// allgatherv decodes sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm.
func (a *args) allgatherv(o *operands) {
	o.comm = a.communicator(7)
	o.send = a.inputBuffer(0, 1)
	o.recvs = a.blocks(o.blockCount(), 3, 4, 5, 6)
}

// alltoall decodes sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm.
func (a *args) alltoall(o *operands) {
	o.comm = a.communicator(6)
	o.send = a.inputBuffer(0, int64(o.blockCount()))
	o.recv = a.repeatedBuffer(3, int64(o.blockCount()))
}

// alltoallv decodes sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm.
func (a *args) alltoallv(o *operands) {
	o.comm = a.communicator(8)
	if o.sends = mpi.InPlaceBlocks; !a.inPlace(0) {
		o.sends = a.blocks(o.blockCount(), 0, 1, 2, 3)
	}
	o.recvs = a.blocks(o.blockCount(), 4, 5, 6, 7)
}

// alltoallw decodes the same arguments as alltoallv, but with arrays of datatypes and displacements in bytes.
// The displacements have 64 bits in MPI_Alltoallw_c.
func (a *args) alltoallw(o *operands) {
	o.comm = a.communicator(8)
	if o.sends = mpi.InPlaceBlocks; !a.inPlace(0) {
		o.sends = a.blocksOfTypes(o.blockCount(), 0, a.countArray)
	}
	o.recvs = a.blocksOfTypes(o.blockCount(), 4, a.countArray)
}

// reductionBuffers decodes sendbuf, recvbuf, count, datatype and op, which are consecutive arguments.
func (a *args) reductionBuffers(o *operands, receives bool) {
	r, n := a.reduction(), a.elementCount(2)
	o.op = r.op
	o.send = a.operandBuffer(0, n, r.elementType)
	if receives {
		o.recv = a.bufferAt(1, n, r.elementType)
		a.checkDistinct(n)
	}
}

// checkDistinct rejects a reduction if buffers 0 and 1 are the same memory, because an algorithm might overwrite the
// contribution too early.
func (a *args) checkDistinct(n int64) {
	if p := a.pointer(0); n > 0 && p != nil && p == a.pointer(1) {
		panic(failf(mpi.ErrBuffer, "both buffers of MPI_%s are at one address: give MPI_IN_PLACE or other memory",
			a.name))
	}
}

// operandBuffer is like bufferAt, but accepts MPI_IN_PLACE.
func (a *args) operandBuffer(i int, n int64, of *datatype.Type) mpi.Buffer {
	if a.inPlace(i) {
		return mpi.InPlace
	}
	return a.bufferAt(i, n, of)
}

// reduce decodes sendbuf, recvbuf, count, datatype, op, root, comm.
func (a *args) reduce(o *operands) {
	o.comm, o.root = a.communicator(6), a.root(5)
	a.reductionBuffers(o, o.isRoot(o.root))
}

// allreduce decodes sendbuf, recvbuf, count, datatype, op, comm.
func (a *args) allreduce(o *operands) {
	o.comm = a.communicator(5)
	a.reductionBuffers(o, true)
}

// reduceScatter decodes sendbuf, recvbuf, recvcounts, datatype, op, comm.
func (a *args) reduceScatter(o *operands) {
	o.comm = a.communicator(5)
	r := a.reduction()
	o.counts = a.countArray(2, o.Size())
	var all int64
	for _, n := range o.counts {
		if n < 0 {
			panic(failf(mpi.ErrCount, "a count is %d", n))
		}
		all += int64(n)
	}
	a.setScatterReduce(o, r, int64(o.counts[o.Rank()]), all)
}

// reduceScatterBlock decodes sendbuf, recvbuf, recvcount, datatype, op, comm.
func (a *args) reduceScatterBlock(o *operands) {
	o.comm = a.communicator(5)
	r, n := a.reduction(), a.elementCount(2)
	a.setScatterReduce(o, r, n, n*int64(o.Size()))
}

// setScatterReduce sets the operands for a reduction over all elements, from which the caller receives own elements of
// the result. If the call is in place, recvbuf initially holds all elements.
func (a *args) setScatterReduce(o *operands, r *reduction, own, all int64) {
	if a.inPlace(0) {
		own = all
	}
	o.op = r.op
	o.send = a.operandBuffer(0, all, r.elementType)
	o.recv = a.bufferAt(1, own, r.elementType)
	a.checkDistinct(own)
}

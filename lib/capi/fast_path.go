package capi

import (
	"context"
	"math"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// frequentCall identifies a call that programs make for every message or in every step.
type frequentCall uint8

const (
	infrequent frequentCall = iota
	sendCall
	recvCall
	isendCall
	irecvCall
	waitCall
	barrierCall
	bcastCall
	reduceCall
	allreduceCall
	allgatherCall
	alltoallCall
	rankCall
	sizeCall
	countCall
)

var frequentCalls = map[string]frequentCall{
	"Send": sendCall, "Recv": recvCall, "Isend": isendCall, "Irecv": irecvCall, "Wait": waitCall,
	"Barrier": barrierCall, "Bcast": bcastCall, "Reduce": reduceCall, "Allreduce": allreduceCall,
	"Allgather": allgatherCall, "Alltoall": alltoallCall,
	"Comm_rank": rankCall, "Comm_size": sizeCall, "Get_count": countCall,
}

// fastPath is the fast path for frequent calls with valid arguments. It decodes the arguments into local variables and
// calls all functions directly, which is faster than using operands and the generic implementation. If anything is
// unusual, such as an invalid handle, fastPath does nothing and returns false; the generic implementation then
// determines the error, if any.
func (a *args) fastPath() (done bool, err error) {
	ctx := context.Background()
	switch a.frequent {
	case waitCall:
		return true, a.wait()
	case barrierCall:
		if c := a.fastComm(0); c != nil {
			return true, mpi.Barrier(ctx, c.Comm)
		}
		return false, nil
	case bcastCall:
		b, ok := a.fastBuffer(0, 1)
		c := a.fastComm(4)
		if c == nil || !ok {
			return false, nil
		}
		return true, c.Bcast(ctx, b, a.root(3))
	case rankCall, sizeCall:
		c := a.fastComm(0)
		if c == nil || a.pointer(1) == nil {
			return false, nil
		}
		n := c.Rank()
		if a.frequent == sizeCall {
			n = c.Size()
		}
		a.setInt(1, n)
		return true, nil
	case countCall:
		p, t := a.pointer(0), a.lib.types.get(a.handle(1, kindDatatype))
		if p == nil || uintptr(p) == a.lib.abi.statusIgnore || t == nil || a.pointer(2) == nil {
			return false, nil
		}
		a.setCount(2, int64(mpi.CountOf(a.lib.statusAt(p), t.Type)))
		return true, nil
	case reduceCall, allreduceCall:
		return a.fastReduction()
	case allgatherCall, alltoallCall:
		return a.fastBlocks()
	}
	return a.fastMessage()
}

// fastComm returns a communicator argument, or nil.
func (a *args) fastComm(i int) *comm {
	a.comm = a.lib.comms.get(a.handle(i, kindComm))
	return a.comm
}

// fastBuffer is like repeatedBuffer, but only for counts that do not overflow when they are multiplied by the number of
// ranks.
func (a *args) fastBuffer(i int, times int64) (b mpi.Buffer, ok bool) {
	n, t := a.count(i+1), a.lib.types.get(a.handle(i+2, kindDatatype))
	if t == nil || !t.committed || uint64(n) > math.MaxInt32 || a.inPlace(i) {
		return mpi.Buffer{}, false
	}
	return mpi.Foreign.MemoryBuffer(a.pointer(i), n*times, t.Type), true
}

// fastMessage performs calls with the arguments buf, count, datatype, rank, tag, comm, which may be followed
// by a status or a request.
func (a *args) fastMessage() (done bool, err error) {
	ctx := context.Background()
	buffer, ok := a.fastBuffer(0, 1)
	c := a.fastComm(5)
	if c == nil || !ok {
		return false, nil
	}
	switch a.frequent {
	case sendCall:
		return true, c.Send(ctx, buffer, a.peer(3), a.tag(4))
	case recvCall:
		var st mpi.Status
		err = c.RecvStatus(ctx, buffer, a.peer(3), a.tag(4), &st)
		a.status(6, &st)
		return true, err
	}
	if a.pointer(6) == nil {
		return false, nil
	}
	var req mpi.Request
	if a.frequent == isendCall {
		req, err = c.Isend(buffer, a.peer(3), a.tag(4))
	} else {
		req, err = c.Irecv(buffer, a.peer(3), a.tag(4))
	}
	if err != nil {
		return true, err
	}
	return true, a.lib.newRequest(a.pointer(6), req, false, c)
}

// fastReduction performs reductions with the arguments sendbuf, recvbuf, count, datatype, op, root (MPI_Reduce
// only), comm. It handles a reduction only if the operation has already been used with this datatype.
func (a *args) fastReduction() (done bool, err error) {
	ctx := context.Background()
	root, last := 0, 5
	if a.frequent == reduceCall {
		root, last = a.root(5), 6
	}
	c, n := a.fastComm(last), a.count(2)
	o, t := a.lib.ops.get(a.handle(4, kindOp)), a.lib.types.get(a.handle(3, kindDatatype))
	if c == nil || o == nil || t == nil || uint64(n) > math.MaxInt32 {
		return false, nil
	}
	r := o.cachedReduction(t)
	if r == nil || a.inPlace(1) || a.pointer(0) == a.pointer(1) {
		return false, nil
	}
	// recv is only used where it is significant
	send, recv := mpi.InPlace, mpi.Foreign.MemoryBuffer(a.pointer(1), n, r.elementType)
	if !a.inPlace(0) {
		send = mpi.Foreign.MemoryBuffer(a.pointer(0), n, r.elementType)
	}
	if a.frequent == allreduceCall {
		return true, c.Allreduce(ctx, send, recv, r.op)
	}
	return true, c.Reduce(ctx, send, recv, r.op, root)
}

// fastBlocks performs calls with the arguments sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype,
// comm. recvbuf has a block for each rank; in MPI_Alltoall, so does sendbuf.
func (a *args) fastBlocks() (done bool, err error) {
	ctx := context.Background()
	c := a.fastComm(6)
	if c == nil {
		return false, nil
	}
	sends, ranks := int64(1), int64(c.blockCount())
	if a.frequent == alltoallCall {
		sends = ranks
	}
	recv, ok := a.fastBuffer(3, ranks)
	if !ok {
		return false, nil
	}
	send := mpi.InPlace
	if !a.inPlace(0) {
		if send, ok = a.fastBuffer(0, sends); !ok {
			return false, nil
		}
	}
	if a.frequent == alltoallCall {
		return true, c.Alltoall(ctx, send, recv)
	}
	return true, c.Allgather(ctx, send, recv)
}

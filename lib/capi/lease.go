package capi

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/lease"
	"github.com/zrlmpi/zrlmpid/mpi"
)

// lessor decides when to lease the Block. A lease costs about as much as a short call, so it must be used for several.
type lessor struct {
	block *lease.Block
	mu    sync.Mutex
	// calls is the value of Block.Calls at the last attempt, and leased is set if that attempt succeeded. waste is the
	// number of leases in sequence that were hardly used. skip is the number of calls after which to lease again, and
	// skips the number of times that it was set.
	calls              uint64
	leased             bool
	waste, skip, skips int
	// request and shape are memory for the next lease.
	request mpe.LeaseRequest
	shape   lease.Shape
}

const (
	// minUse is the minimum number of calls for which a lease was worth its cost.
	minUse = 4
	// maxWaste bounds waste: after that number of leases, about every 2^maxWaste-th call leases.
	maxWaste = 6
)

// LeaseTo makes the library lease its fast path to C code through b, memory allocated by C that is zero.
func (l *Library) LeaseTo(b *lease.Block) {
	l.lessor.block = b
	for i := range l.types.predefined {
		e := &l.types.predefined[i]
		if e.object == nil || !e.object.IsDense() || e.object.Size() > lease.MaxPayload {
			continue
		}
		b.Types[e.handle%lease.MaxTypes] = lease.Type{Handle: e.handle, Size: uint32(e.object.Size()),
			Wire: mpi.Foreign.WireDatatype(e.object.Type)}
	}
}

// Block returns the Block passed to LeaseTo, or nil.
func (l *Library) Block() *lease.Block { return l.lessor.block }

// lease leases the Block after a call that has succeeded, if C code can make calls like it.
func (l *Library) lease(a *args) {
	x := &l.lessor
	switch a.frequent {
	case isendCall, irecvCall, waitCall, rankCall, sizeCall, countCall:
		return
	}
	if x.block == nil || l.upstream != nil || a.comm == nil || !x.mu.TryLock() {
		return
	}
	defer x.mu.Unlock()
	peer, shape := -1, &x.shape
	*shape = lease.Shape{Comm: a.comm.handle}
	switch a.frequent {
	case sendCall, recvCall:
		if peer = a.int(3); peer < 0 || !x.isShort(a.count(1), a.handle(2, kindDatatype)) {
			return
		}
	case barrierCall:
		shape.Call = lease.Barrier
	case bcastCall:
		shape.Call, shape.Count, shape.Type, shape.Root = lease.Bcast, a.count(1), a.handle(2, kindDatatype),
			uint32(a.int(3))
	case reduceCall:
		shape.Call, shape.Count, shape.Type, shape.Op, shape.Root = lease.Reduce, a.count(2),
			a.handle(3, kindDatatype), a.handle(4, kindOp), uint32(a.int(5))
	case allreduceCall:
		shape.Call, shape.Count, shape.Type, shape.Op = lease.Allreduce, a.count(2), a.handle(3, kindDatatype),
			a.handle(4, kindOp)
	case allgatherCall, alltoallCall:
		if shape.Call = lease.Allgather; a.frequent == alltoallCall {
			shape.Call = lease.Alltoall
		}
		if shape.Count, shape.Type = a.count(1), a.handle(2, kindDatatype); shape.Count != a.count(4) ||
			shape.Type != a.handle(5, kindDatatype) {
			return
		}
	default:
		return
	}
	if shape.Call > lease.Barrier && !x.isShort(shape.Count, shape.Type) || !x.isDue() {
		return
	}
	if a.comm.sequence == nil {
		a.comm.sequence = (*uint32)(l.callbacks.Allocate(int64(unsafe.Sizeof(uint32(0)))))
		if a.comm.sequence == nil {
			return
		}
	}
	described := shape
	if peer >= 0 {
		described = nil
	}
	x.leased = mpi.Foreign.Lease(a.comm.Comm, x.block, &x.request, a.comm.handle, a.comm.sequence, peer, described)
}

// isShort reports whether C code can transfer the elements.
func (x *lessor) isShort(count int64, datatype uint64) bool {
	t := &x.block.Types[datatype%lease.MaxTypes]
	return t.Handle == datatype && uint64(count) <= lease.MaxPayload && uint64(count)*uint64(t.Size) <= lease.MaxPayload
}

// isDue reports whether to lease now.
func (x *lessor) isDue() bool {
	if x.skip > 0 {
		x.skip--
		return false
	}
	calls := atomic.LoadUint64(&x.block.Calls)
	if used := calls - x.calls; x.leased && used >= minUse {
		x.waste = 0
	} else {
		x.waste = min(x.waste+1, maxWaste)
		// The distance between attempts must not always be a multiple of the length of the program's loop, in calls.
		x.skips++
		x.skip = 1<<x.waste - 1 + x.skips%2
	}
	x.calls = calls
	return true
}

// endLeases ends the use of the communicator by C code.
func (c *comm) endLeases() {
	if c.sequence == nil {
		return
	}
	mpi.Foreign.EndLeases(c.Comm, c.lib.lessor.block, c.handle)
	c.lib.callbacks.Free(unsafe.Pointer(c.sequence))
	c.sequence = nil
}

package capi

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/mpe/lease"
	"github.com/zrlmpi/zrlmpid/mpi"
)

// lender decides when to lend the Block. A loan costs about as much as a short call, so it must be used for several.
type lender struct {
	block *lease.Block
	mu    sync.Mutex
	// calls is the value of Block.Calls at the last attempt, and lent is set if that attempt succeeded. waste is the
	// number of loans in sequence that were hardly used. skip is the number of calls after which to lend again.
	calls       uint64
	lent        bool
	waste, skip int
}

const (
	// minUse is the minimum number of calls for which a loan was worth its cost.
	minUse = 4
	// maxWaste bounds waste: after that number of loans, every 2^maxWaste-th call lends.
	maxWaste = 6
)

// LendTo makes the library lend its fast path to C code through b, memory allocated by C that is zero.
func (l *Library) LendTo(b *lease.Block) {
	l.lender.block = b
	for i := range l.types.predefined {
		e := &l.types.predefined[i]
		if e.object == nil || !e.object.IsDense() || e.object.Size() > lease.MaxPayload {
			continue
		}
		b.Types[e.handle%lease.MaxTypes] = lease.Type{Handle: e.handle, Size: uint32(e.object.Size()),
			Wire: mpi.Foreign.WireDatatype(e.object.Type)}
	}
}

// Block returns the Block passed to LendTo, or nil.
func (l *Library) Block() *lease.Block { return l.lender.block }

// lend lends the Block after a call that has succeeded, if C code can make calls like it.
func (l *Library) lend(a *args) {
	x := &l.lender
	if x.block == nil || l.upstream != nil || a.comm == nil || !x.mu.TryLock() {
		return
	}
	defer x.mu.Unlock()
	peer, shape := -1, lease.Shape{Comm: a.comm.handle}
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
	described := &shape
	if peer >= 0 {
		described = nil
	}
	x.lent = mpi.Foreign.Lend(a.comm.Comm, x.block, a.comm.handle, a.comm.sequence, peer, described)
}

// isShort reports whether C code can transfer the elements.
func (x *lender) isShort(count int64, datatype uint64) bool {
	t := &x.block.Types[datatype%lease.MaxTypes]
	return t.Handle == datatype && uint64(count) <= lease.MaxPayload && uint64(count)*uint64(t.Size) <= lease.MaxPayload
}

// isDue reports whether to lend now.
func (x *lender) isDue() bool {
	if x.skip > 0 {
		x.skip--
		return false
	}
	calls := atomic.LoadUint64(&x.block.Calls)
	if used := calls - x.calls; x.lent && used >= minUse {
		x.waste = 0
	} else {
		x.waste = min(x.waste+1, maxWaste)
		x.skip = 1<<x.waste - 1
	}
	x.calls = calls
	return true
}

// endLoans ends the use of the communicator by C code.
func (c *comm) endLoans() {
	if c.sequence == nil {
		return
	}
	mpi.Foreign.EndLoans(c.Comm, c.lib.lender.block, c.handle)
	c.lib.callbacks.Free(unsafe.Pointer(c.sequence))
	c.sequence = nil
}

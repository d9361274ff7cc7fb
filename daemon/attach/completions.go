package attach

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// completionQueue tracks a session's running operations and its completed but unanswered operations.
type completionQueue struct {
	// onCompletion is called after an operation has completed. It must neither block nor call the rank.
	onCompletion func()
	// hasCompleted is set if the list completed may be non-empty.
	hasCompleted atomic.Bool
	// answering is held while operations are being answered, so that cancel cannot use a rank operation that is being
	// freed. It guards batch.
	answering sync.Mutex
	batch     []*operation

	mu        sync.Mutex
	running   int
	completed []*operation // in order of completion
}

// notifyingOp is an operation that invokes the callback then on completion. Before that, it may invoke the callback
// awaited to ask whether the program is waiting for the operation; see mpe.Request.OnEnd.
type notifyingOp interface {
	mpe.Op
	OnEnd(then func(), awaited func() bool)
}

// watch registers a running operation to be answered on completion. It reports whether no other operation is running.
func (e *completionQueue) watch(op *operation) (alone bool) {
	if op.onEnd == nil {
		op.onEnd = func() { e.addCompleted(op) }
		if op.session.awaited != nil {
			op.isAwaited = func() bool { return op.session.awaited.Has(op.ID) }
		}
	}
	e.mu.Lock()
	op.running = true
	e.running++
	alone = e.running == 1
	e.mu.Unlock()
	op.rankOp.OnEnd(op.onEnd, op.isAwaited)
	return alone
}

// addCompleted queues a completed operation for its answer, unless remove has already removed the operation.
func (e *completionQueue) addCompleted(op *operation) {
	e.mu.Lock()
	if op.running {
		e.completed = append(e.completed, op)
		e.hasCompleted.Store(true)
	}
	e.mu.Unlock()
	e.onCompletion()
}

// answer answers the completed operations and reports whether there were any. The argument now must be true unless the
// caller is the reading goroutine; see operation.end.
func (e *completionQueue) answer(now bool) (found bool) {
	if !e.hasCompleted.Load() {
		return false
	}
	e.answering.Lock()
	defer e.answering.Unlock()
	for e.hasCompleted.Load() {
		e.mu.Lock()
		e.batch, e.completed = e.completed, e.batch[:0]
		e.hasCompleted.Store(false)
		for _, op := range e.batch {
			op.running = false
		}
		e.running -= len(e.batch)
		e.mu.Unlock()
		for i, op := range e.batch {
			st, _, err := op.rankOp.Test()
			e.batch[i], found = nil, true
			op.end(&st, false, err, now)
		}
	}
	return found
}

// cancel cancels an operation unless it has been answered.
func (e *completionQueue) cancel(op *operation) {
	e.answering.Lock()
	defer e.answering.Unlock()
	if op.rankOp != nil {
		op.rankOp.Cancel()
	}
}

// remove removes an operation that has not been answered, and reports whether it did. If it returns true, only its
// caller may end the operation.
func (e *completionQueue) remove(op *operation) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !op.running {
		return false
	}
	op.running = false
	e.running--
	if i := slices.Index(e.completed, op); i >= 0 {
		e.completed = slices.Delete(e.completed, i, i+1)
	}
	return true
}

// idle reports whether no operation is running.
func (e *completionQueue) idle() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.running == 0
}

package attach

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// ends tracks the running operations of a session, and the completed operations that have not been answered
// yet.
type ends struct {
	// added is called after an operation has completed. It must neither block nor call the rank.
	added func()
	// some is set if there may be operations to answer.
	some atomic.Bool
	// answering is held while operations are being answered, so that none of them is cancelled at the same
	// time. It guards batch.
	answering sync.Mutex
	batch     []*operation

	mu      sync.Mutex
	running int
	over    []*operation // in order of completion
}

// ender is an operation of a rank that calls a function when it ends.
type ender interface {
	mpe.Op
	OnEnd(then func())
}

// watch registers an operation so that it is answered when it ends. It reports whether no other operation is
// running.
func (e *ends) watch(op *operation) (alone bool) {
	if op.onEnd == nil {
		op.onEnd = func() { e.add(op) }
	}
	e.mu.Lock()
	op.runs = true
	e.running++
	alone = e.running == 1
	e.mu.Unlock()
	op.dev.OnEnd(op.onEnd)
	return alone
}

// add adds a completed operation, unless take has already removed it.
func (e *ends) add(op *operation) {
	e.mu.Lock()
	if op.runs {
		e.over = append(e.over, op)
		e.some.Store(true)
	}
	e.mu.Unlock()
	e.added()
}

// answer answers the completed operations and reports whether there were any. now means that the caller is not
// the reading goroutine.
func (e *ends) answer(now bool) (found bool) {
	if !e.some.Load() {
		return false
	}
	e.answering.Lock()
	defer e.answering.Unlock()
	for e.some.Load() {
		e.mu.Lock()
		e.batch, e.over = e.over, e.batch[:0]
		e.some.Store(false)
		for _, op := range e.batch {
			op.runs = false
		}
		e.running -= len(e.batch)
		e.mu.Unlock()
		for i, op := range e.batch {
			st, _, err := op.dev.Test()
			e.batch[i], found = nil, true
			op.end(&st, false, err, now)
		}
	}
	return found
}

// cancel cancels an operation if it is still running.
func (e *ends) cancel(op *operation) {
	e.answering.Lock()
	defer e.answering.Unlock()
	if op.dev != nil {
		op.dev.Cancel()
	}
}

// take removes an operation that has not been answered and reports whether it did so. If it did, only the
// caller may end the operation.
func (e *ends) take(op *operation) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !op.runs {
		return false
	}
	op.runs = false
	e.running--
	if i := slices.Index(e.over, op); i >= 0 {
		e.over = slices.Delete(e.over, i, i+1)
	}
	return true
}

// idle reports whether no operation is running.
func (e *ends) idle() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.running == 0
}

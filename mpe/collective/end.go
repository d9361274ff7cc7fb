package collective

import (
	"cmp"
	"slices"
)

// Abort ends the call because its caller's context is done; cause is the context's cause. The call fails with the error
// of its oldest message. No user function may be running.
func (x *Execution) Abort(cause error) {
	x.setCause(cause)
	of := x
	if !x.started {
		of = x.executor.agreeing(x)
	}
	if rank, _, waits := x.awaitedRank(); waits {
		x.endWith(x.sharedError(rank, &AwaitError{Rank: rank, Cause: cause}))
		return
	}
	if of == nil || len(of.inFlight) == 0 { // the call waits for no rank
		x.endWith(cause)
		return
	}
	oldest := slices.MinFunc(of.inFlight, func(a, b *Message) int { return cmp.Compare(a.id, b.id) })
	err := of.stepError(oldest.step, x.executor.engine.WaitError(oldest, cause))
	if of != x {
		err.Collective, err.Algorithm, err.Others = x.Call.Collective, "", x.silentMembers()
		x.endWith(err)
		return
	}
	for _, m := range of.inFlight {
		if m.Peer != oldest.Peer {
			err.Others = append(err.Others, m.Peer)
		}
	}
	x.endWith(err)
}

// setCause records the reason why the caller abandoned the call.
func (x *Execution) setCause(cause error) {
	if x.cause = x.executor.engine.CauseOf(cause); x.cause == CauseOther {
		x.cause = CauseCancelled // a context's cause may be any error
	}
}

// CancelComputing cancels the running user functions, because the caller abandoned the call. It reports whether a
// function is still running and therefore using the call's buffers.
func (x *Execution) CancelComputing(cause error) bool {
	if x.computing > 0 && x.CancelUser != nil {
		x.setCause(cause)
		x.CancelUser(cause)
	}
	return x.computing > 0
}

// endWith ends a call that is in progress or queued. The call fails with the error err.
func (x *Execution) endWith(err error) {
	if x.started {
		x.failErr = err
		x.cancelAll()
	} else {
		x.executor.dequeue(x)
	}
	x.end(err)
}

// cancelAll cancels all messages in flight. Messages that cannot be cancelled continue, but no longer access the call's
// buffers.
func (x *Execution) cancelAll() {
	for len(x.inFlight) > 0 {
		m := x.inFlight[len(x.inFlight)-1]
		x.executor.engine.Cancel(m)
		x.release(m)
	}
}

// end ends the call, and begins the calls that waited for its end.
func (x *Execution) end(err error) {
	executor, then := x.executor, x.onEnd
	if err != nil {
		x.sendAbort(err)
		if x.algorithm != nil {
			executor.countFor(x).Failures++
		}
	}
	remove(&executor.calls, x)
	if x.Request != nil {
		executor.recordEnd(x, err)
	}
	order, begun := x.order, x.started
	var sharing *sharing
	if x.sharedCall != nil {
		sharing = x.sharedCall.sharing
		x.endShared(err != nil)
	}
	x.execution, x.inFlight, x.localSteps = execution{}, x.inFlight[:0], x.localSteps[:0]
	if x.Request != nil {
		executor.engine.Finish(x, err)
	}
	if sharing != nil {
		sharing.beginNext()
	}
	if order != nil && begun {
		order.busy = false
		executor.beginQueued(order)
	}
	if then != nil {
		then(err)
	}
}

// agreeing returns the agreement's own call if x waits for it, or nil.
func (e *Executor) agreeing(x *Execution) *Execution {
	if a := e.agreements[x.Comm]; a != nil {
		return a.call
	}
	return nil
}

// dequeue removes a call from the queue in which it waits for an earlier call or for an agreement. The call or
// agreement that it waited for continues.
func (e *Executor) dequeue(exec *Execution) {
	is := func(y *Execution) bool { return exec == y }
	if exec.order != nil {
		exec.order.waiting = slices.DeleteFunc(exec.order.waiting, is)
	} else if exec.sharedCall != nil { // endShared removes it
		return
	} else if a := e.agreements[exec.Comm]; a != nil {
		a.waiting = slices.DeleteFunc(a.waiting, is)
	}
}

// remove removes an element from an unordered list.
func remove[T comparable](list *[]T, of T) {
	if i := slices.Index(*list, of); i >= 0 {
		last := len(*list) - 1
		(*list)[i] = (*list)[last]
		clear((*list)[last:])
		*list = (*list)[:last]
	}
}

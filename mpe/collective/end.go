package collective

import (
	"cmp"
	"slices"
)

// Abort ends the call because its caller's context has ended with cause. The error is that
// of its oldest message. No user's function may be running.
func (x *Execution) Abort(cause error) {
	x.setCause(cause)
	of := x
	if !x.begun {
		of = x.e.agreeing(x)
	}
	if rank, _, waits := x.awaits(); waits {
		x.endWith(x.sharedError(rank, &AwaitError{Rank: rank, Cause: cause}))
		return
	}
	if of == nil || len(of.under) == 0 { // it waits for no rank
		x.endWith(cause)
		return
	}
	oldest := slices.MinFunc(of.under, func(a, b *Message) int { return cmp.Compare(a.id, b.id) })
	err := of.stepError(oldest.step, x.e.engine.WaitError(oldest, cause))
	if of != x {
		err.Collective, err.Algorithm, err.Others = x.Call.Collective, "", x.silent()
		x.endWith(err)
		return
	}
	for _, m := range of.under {
		if m.Peer != oldest.Peer {
			err.Others = append(err.Others, m.Peer)
		}
	}
	x.endWith(err)
}

// setCause notes why the caller has abandoned the call.
func (x *Execution) setCause(cause error) {
	if x.cause = x.e.engine.CauseOf(cause); x.cause == CauseOther {
		x.cause = CauseCancelled // a context may end for whatever its owner likes
	}
}

// CancelComputing has a user's function that can be cancelled return, as the caller has
// abandoned the call. It reports whether one is running, which has the call's buffers.
func (x *Execution) CancelComputing(cause error) bool {
	if x.computing > 0 && x.CancelUser != nil {
		x.setCause(cause)
		x.CancelUser(cause)
	}
	return x.computing > 0
}

// endWith ends a call that has not, with err.
func (x *Execution) endWith(err error) {
	if x.begun {
		x.failed = err
		x.cancelAll()
	} else {
		x.e.dequeue(x)
	}
	x.end(err)
}

// cancelAll ends what is under way: it is cancelled, or goes on without the call's
// memory.
func (x *Execution) cancelAll() {
	for len(x.under) > 0 {
		m := x.under[len(x.under)-1]
		x.e.engine.Cancel(m)
		x.release(m)
	}
}

// end ends the call.
func (x *Execution) end(err error) {
	e, then := x.e, x.then
	if err != nil {
		x.sendAbort(err)
		if x.algorithm != nil {
			e.counted(x).Failures++
		}
	}
	remove(&e.calls, x)
	if x.Request != nil {
		e.noteEnd(x, err)
	}
	order, begun := x.order, x.begun
	var sharing *sharing
	if x.share != nil {
		sharing = x.share.sharing
		x.endShared(err != nil)
	}
	x.execution, x.under, x.local = execution{}, x.under[:0], x.local[:0]
	if x.Request != nil {
		e.engine.Finish(x, err)
	}
	if sharing != nil {
		sharing.beginNext()
	}
	if order != nil && begun {
		order.busy = false
		e.nextInTurn(order)
	}
	if then != nil {
		then(err)
	}
}

// agreeing is the call by which the members of x's communicator agree, for which it
// waits, or nil.
func (e *Executor) agreeing(x *Execution) *Execution {
	if a := e.agreements[x.Comm]; a != nil {
		return a.call
	}
	return nil
}

// dequeue removes a call from those that wait for an earlier one, or until the members
// have agreed, which goes on.
func (e *Executor) dequeue(x *Execution) {
	is := func(y *Execution) bool { return x == y }
	if x.order != nil {
		x.order.waiting = slices.DeleteFunc(x.order.waiting, is)
	} else if x.share != nil { // endShared does it
		return
	} else if a := e.agreements[x.Comm]; a != nil {
		a.waiting = slices.DeleteFunc(a.waiting, is)
	}
}

// remove takes an element out of a list whose order does not matter.
func remove[T comparable](list *[]T, of T) {
	if i := slices.Index(*list, of); i >= 0 {
		last := len(*list) - 1
		(*list)[i] = (*list)[last]
		clear((*list)[last:])
		*list = (*list)[:last]
	}
}

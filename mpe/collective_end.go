package mpe

import "slices"

// abortCall ends a call because its caller's context has ended. The error is that of
// its oldest message.
func (e *core) abortCall(r *Request, cause error) {
	x := r.call
	x.setCause(cause)
	if !x.begun {
		x = e.agreeing(x)
	}
	if x == nil || len(x.under) == 0 { // it waits for no rank
		e.endCall(r, cause)
		return
	}
	oldest := x.under[0]
	for _, u := range x.under {
		if u.id < oldest.id {
			oldest = u
		}
	}
	wait := e.waitError(oldest, cause)
	err := x.stepError(int(oldest.step), wait)
	for _, u := range x.under {
		if u != oldest && u.peer >= 0 {
			err.Others = append(err.Others, u.peer)
		}
	}
	e.endCall(r, err)
}

// setCause notes why the caller has abandoned the call.
func (x *collectiveOp) setCause(cause error) {
	if x.cause = causeOf(cause); x.cause == CauseOther {
		x.cause = CauseCancelled // a context may end for whatever its owner likes
	}
}

// cancelUser has a user's function that can be cancelled return, as the caller has
// abandoned the call.
func (x *collectiveOp) cancelUser(cause error) {
	if x.CancelUser != nil {
		x.setCause(cause)
		x.CancelUser(cause)
	}
}

// endCall ends a call that has not, with err.
func (e *core) endCall(r *Request, err error) {
	x := r.call
	if x.begun {
		x.failed = err
		x.cancelAll()
	} else {
		e.dequeue(x)
	}
	x.end(err)
}

// cancelAll ends what is under way: it is cancelled, or goes on without the call's
// memory.
func (x *collectiveOp) cancelAll() {
	for len(x.under) > 0 {
		x.cancelRequest(x.under[len(x.under)-1], ErrCancelled)
	}
}

// end ends the call.
func (x *collectiveOp) end(err error) {
	if x.over {
		return
	}
	x.over = true
	e, r, then := x.e, x.r, x.then
	if err != nil {
		x.sendAbort(err)
		if x.algorithm != nil {
			e.counted(x).Failures++
		}
	}
	for i, y := range e.collectiveOps {
		if x == y {
			last := len(e.collectiveOps) - 1
			e.collectiveOps[i], e.collectiveOps[last] = e.collectiveOps[last], nil
			e.collectiveOps = e.collectiveOps[:last]
			break
		}
	}
	order, begun := x.order, x.begun
	x.free()
	if r != nil {
		r.call = nil
		e.finish(r, err)
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
func (e *core) agreeing(x *collectiveOp) *collectiveOp {
	if a := e.agreements[x.Comm]; a != nil {
		return a.call
	}
	return nil
}

// dequeue removes a call from those that wait for an earlier one, or until the members
// have agreed, which goes on.
func (e *core) dequeue(x *collectiveOp) {
	var waiting *[]*collectiveOp
	switch a := e.agreements[x.Comm]; {
	case x.order != nil:
		waiting = &x.order.waiting
	case a != nil:
		waiting = &a.waiting
	default:
		return
	}
	if i := slices.Index(*waiting, x); i >= 0 {
		*waiting = slices.Delete(*waiting, i, i+1)
	}
}

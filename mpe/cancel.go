package mpe

// detachOrCancel ends a request for its caller, whose context has ended. The caller gets
// its buffer back at once. What cannot be cancelled on the wire goes on with a copy: a message
// whose DATA is out still needs its payload for retransmissions, and a sender that has been
// cleared will send, so its message is kept for the next receive.
//
// With release, the caller's buffer goes to what goes on, instead of a copy. Release
// is called when it is not needed any more, with the lock held, or before detachOrCancel
// returns.
func (e *Engine) detachOrCancel(r *Request, cause error, release func()) (Status, error) {
	detached := false
	defer func() {
		if !detached && release != nil {
			release()
		}
	}()
	e.lock()
	defer e.unlock()
	for r.kind == opCollective && !r.ended.Load() && r.call.computing > 0 {
		r.call.cancelUser(cause)
		e.awaitComputed() // the user's function has the buffers
	}
	if r.ended.Load() { // while the lock was awaited
		return r.status, r.err
	}
	if r.kind == opCollective {
		e.abortCall(r, cause)
		e.flush()
		return r.status, r.err
	}
	err := e.waitError(r, cause)
	if !e.cancel(r) {
		err.InTransfer, detached = true, true
		e.placement.revoke(r) // before the caller has the buffer
		e.detach(r, release)
	}
	e.finish(r, err)
	e.flush()
	return r.status, r.err
}

// Cancel cancels the request, if that is still possible.
func (r *Request) Cancel() {
	e := r.e
	e.lock()
	defer e.unlock()
	if r.ended.Load() {
		return
	}
	if r.kind == opCollective {
		return // the other ranks would wait for it
	}
	if e.cancel(r) {
		e.finish(r, ErrCancelled)
	}
	e.flush()
}

// cancel takes a request out of wherever it waits, and reports false if it is
// too late for that. A peer of the extended profile that knows of the message is
// asked to cancel it; the request then ends when the peer has answered.
func (e *Engine) cancel(r *Request) bool {
	switch {
	case r.kind == OpRecv && r.in == nil:
		_, ok := e.matchers.of(r.comm).CancelPosted(r.handle)
		return ok
	case r.kind == OpRecv:
		return r.in.p != nil && r.in.p.cancelRecv(r)
	case r.p == nil: // to this rank, and no receive has matched
		in := r.in
		in.local = nil
		_, ok := e.matchers.of(in.comm).RemoveUnexpected(in.handle)
		return ok
	}
	return r.p.cancelSend(r)
}

// detach gives the transfer of a request that cannot be cancelled a buffer of
// its own.
func (e *Engine) detach(r *Request, release func()) {
	if r.send() {
		r.p.detachSend(r, release)
	} else {
		r.in.p.detachRecv(r, release)
	}
}

// abortQueued ends everything that has not begun to move.
func (e *Engine) abortQueued(err error) {
	for _, m := range e.matchers.all {
		var waiting []*Request
		m.EachPosted(func(_, _ int32, r *Request) bool {
			waiting = append(waiting, r)
			return true
		})
		for _, r := range waiting {
			m.CancelPosted(r.handle)
		}
		m.EachUnexpected(func(_, _ int32, in *inbound) bool {
			if in.local != nil {
				waiting = append(waiting, in.local)
			}
			return true
		})
		for _, r := range waiting {
			e.finish(r, err)
		}
	}
	for _, p := range e.peers {
		if p != nil {
			p.abortUnsent(err)
		}
	}
	for _, pr := range e.probes {
		select {
		case pr.found <- struct{}{}:
		default:
		}
	}
}

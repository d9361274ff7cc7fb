package core

// AbortWait ends a pending request with cause, because its caller's context is done. A transfer that cannot be
// cancelled continues in the memory that keep returns. A message that the receive has already matched is delivered to
// the next matching receive, or dropped if gone is set, which means that the calling program no longer exists.
func (e *Core) AbortWait(request *Request, cause error, keep KeepFunc, gone bool) {
	switch {
	case request.Done:
		return
	case request.kind == opCollective:
		e.callerGone = gone
		request.Call.Abort(cause)
	default:
		err := waitError(e, request, cause)
		e.callerGone = gone
		if !e.cancel(request) {
			err.InTransfer = true
			revokePlacement(request) // before the caller reuses the buffer
			e.detach(request, keep, gone)
		}
		e.finish(request, err)
	}
	e.callerGone = false
	e.flush()
}

// CancelRequest cancels a request, unless it is too late. It never cancels a collective call, because the other ranks
// would wait for this rank.
func (e *Core) CancelRequest(r *Request) {
	if r.Done || r.kind == opCollective {
		return
	}
	if e.cancel(r) {
		e.finish(r, ErrCancelled)
	}
	e.flush()
}

// cancel removes a request from its queue, and reports whether it did so in time. If an extended peer already knows of
// the message, cancel returns false and asks the peer to cancel the message; the peer's answer then ends the request.
func (e *Core) cancel(request *Request) bool {
	switch {
	case request.kind == OpRecv && request.inbound == nil:
		_, ok := e.matching.forComm(request.comm).CancelPosted(request.handle)
		if ok && e.callerGone {
			noteLeftRecv(e, request)
		}
		return ok
	case request.kind == OpRecv:
		return request.inbound.p != nil && request.inbound.p.cancel(request)
	case request.p == nil: // to this rank, and not matched
		in := request.inbound
		in.local = nil
		_, ok := e.matching.forComm(in.comm).RemoveUnexpected(in.handle)
		return ok
	}
	return request.p.cancel(request)
}

// detach moves the transfer of a request that cannot be cancelled to a private buffer. If drop is set, the message is
// discarded instead of offered to other receives.
func (e *Core) detach(r *Request, keep KeepFunc, drop bool) {
	p := r.p
	if !r.isSend() {
		p = r.inbound.p
	}
	p.detach(r, keep, drop)
}

// abortQueued ends all requests whose data transfer has not begun, with the error err.
func (e *Core) abortQueued(err error) {
	for _, m := range e.matching.matchers {
		var waiting []*Request
		m.EachPosted(func(_, _ int32, r *Request) bool {
			waiting = append(waiting, r)
			return true
		})
		for _, r := range waiting {
			m.CancelPosted(r.handle)
		}
		m.EachUnexpected(func(_, _ int32, u unexpected) bool {
			if u.inbound != nil && u.inbound.local != nil {
				waiting = append(waiting, u.inbound.local)
			}
			return true
		})
		for _, r := range waiting {
			e.finish(r, err)
		}
	}
	for p := range e.peers.created {
		p.abort(err, false)
	}
	for _, pr := range e.Probes.list {
		e.wake(pr.Wake)
	}
}

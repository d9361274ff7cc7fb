package mpe

import (
	"errors"
	"fmt"

	"github.com/zrlmpi/zrlmpid/handshake"
)

// abandon gives a request up for its caller. The caller gets its buffer back at
// once. What the wire cannot take back goes on with a copy: a message whose
// DATA is out still needs its payload for repeats, and a sender that has been
// cleared will send, so its message is kept for the next receive.
//
// With release, the caller leaves its buffer to what goes on, instead of a copy. Release
// is called when it is not needed any more, with the lock held, or before abandon returns.
func (e *Engine) abandon(r *Request, cause error, release func()) (Status, error) {
	left := false
	defer func() {
		if !left && release != nil {
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
		e.abandonCall(r, cause)
		e.settle()
		return r.status, r.err
	}
	err := e.waitError(r, cause)
	if !e.takeBack(r, false) {
		err.InTransfer, left = true, true
		e.landing.revoke(r) // before somebody else has the buffer
		e.orphan(r, release)
	}
	e.finish(r, err)
	e.settle()
	return r.status, r.err
}

// Cancel takes the request back, if that is still possible.
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
	if e.takeBack(r, true) {
		e.finish(r, ErrCancelled)
	}
	e.settle()
}

// takeBack takes a request out of wherever it waits, and reports false if it is
// too late for that. With ask set, a peer is asked to give up a message that it
// knows of; the request then ends when the peer has answered.
func (e *Engine) takeBack(r *Request, ask bool) bool {
	p := r.p
	switch {
	case r.kind == OpRecv:
		return e.takeBackRecv(r)
	case p == nil: // to this rank, and no receive has matched
		in := r.in
		in.local = nil
		_, ok := e.matcher(in.comm).RemoveUnexpected(in.handle)
		return ok
	case p.conn != nil:
		return e.takeBackExtended(r, ask)
	case p.sendq.remove(r):
		return true
	case r == p.sending:
		acts, ok := e.pair(p).CancelSend(e.at, r.id, e.acts[:0])
		e.acts = acts
		if ok {
			p.sending = nil
			e.nextSend(p)
		}
		e.act(p, nil)
		return ok
	}
	return false
}

func (e *Engine) takeBackRecv(r *Request) bool {
	if r.in == nil {
		_, ok := e.matcher(r.comm).CancelPosted(r.handle)
		return ok
	}
	p := r.in.p
	if p == nil || p.pair == nil || !e.pair(p).CancelRecv(r.id) {
		return false
	}
	p.recving = nil // and its SEND_REQUEST is deferred again
	e.act(p, nil)
	return true
}

// orphan gives the transfer of a request that cannot be taken back a buffer of
// its own.
func (e *Engine) orphan(r *Request, release func()) {
	in := r.in
	switch {
	case r.send() && r.p.conn != nil:
		r.p.reclaim(r.out)
		r.p.outs.orphan(r, &e.buffers, release)
	case r.send():
		r.p.sending = e.heirOf(r, release)
	case in.p.conn != nil:
		in.buf = e.buffers.own(in.buf[:min(int64(len(in.buf)), in.bytes)], release)
		in.own, in.req = true, nil
		e.restore(in)
	default:
		in.p.recving = e.heirOf(r, release)
	}
}

func (e *Engine) heirOf(r *Request, release func()) *Request {
	return &Request{
		e: r.e, kind: r.kind, peer: r.peer, p: r.p, tag: r.tag, comm: r.comm, datatype: r.datatype, anyDatatype: r.anyDatatype,
		buf: e.buffers.own(r.buf, release), posted: r.posted, id: r.id, in: r.in, orphan: true, status: r.status,
	}
}

// waitError describes what r waits for.
func (e *Engine) waitError(r *Request, cause error) *WaitError {
	now := e.at
	w := &WaitError{cause: cause, Wait: handshake.Wait{ID: r.id, Local: uint32(e.rank), Since: r.posted}}
	if r.peer >= 0 {
		w.Remote = uint32(r.peer)
	}
	p := r.p
	if p != nil {
		w.Network = p.sendErr
	}
	switch {
	case !r.send() && r.in == nil:
		w.State, w.For = handshake.WaitRequest, handshake.WaitRequest.WaitsFor()
		w.text = e.describeRecv(r, now)
		if w.Queued = e.postedBefore(r); w.Queued > 0 {
			w.text = fmt.Sprintf("queued behind %d others since %v, and %s", w.Queued, handshake.Round(now-r.posted), w.text)
		}
	case !r.send() && r.in.p != nil && r.in.p.pair != nil:
		p = r.in.p
		w.Wait, _ = p.pair.RecvWait()
		w.text, w.Network = w.Describe(now), p.sendErr
	case !r.send():
		e.describeExtendedRecv(w, r.in, now)
	case p == nil:
		w.State = handshake.WaitClear
		w.text = fmt.Sprintf("rank %d has sent itself a message with tag %d, and waits for a receive of it since %v", e.rank, r.tag, handshake.Round(now-r.posted))
	case p.conn != nil:
		e.describeExtendedSend(w, r, now)
	default:
		w.Wait, _ = p.pair.SendWait()
		w.text = w.Describe(now)
		if p.sending != r {
			w.Queued = 1 + p.sendq.before(r)
			w.text = fmt.Sprintf("queued behind %d others since %v, and %s", w.Queued, handshake.Round(now-r.posted), w.text)
		}
	}
	return w
}

// describeRecv says what a receive waits for that no message has matched.
func (e *Engine) describeRecv(r *Request, now handshake.Instant) string {
	if p := r.p; p != nil && p.pair != nil {
		w := handshake.Wait{
			State: handshake.WaitRequest, For: handshake.WaitRequest.WaitsFor(),
			Local: uint32(e.rank), Remote: uint32(p.rank), Since: r.posted,
		}
		s := w.Describe(now)
		if p.recving != nil {
			w, _ := p.pair.RecvWait()
			return w.Describe(now)
		}
		var refused *handshake.PartialError
		if errors.As(p.pair.Refuses(), &refused) {
			s += fmt.Sprintf("; it may wait for rank %d, which sends it nothing more since it has not acknowledged %d words", e.rank, refused.Words)
		}
		return s
	}
	m := Match{Source: r.peer, Tag: int(r.tag), Comm: r.comm}
	s := fmt.Sprintf("rank %d waits for a message%s since %v", e.rank, describeMatch(m), handshake.Round(now-r.posted))
	if r.p != nil && r.p.conn != nil {
		s += r.p.whyNothingComes()
	}
	return s
}

// postedBefore counts the receives that a message for r would meet first, if it
// fitted them.
func (e *Engine) postedBefore(r *Request) int {
	n := 0
	if r.p != nil && r.p.recving != nil {
		n++
	}
	e.matcher(r.comm).EachPosted(func(_, _ int32, other *Request) bool {
		if other == r {
			return false
		}
		if other.peer == r.peer && (r.p.noTags() || other.tag == r.tag) {
			n++
		}
		return true
	})
	return n
}

// failQueued ends everything that has not begun to move.
func (e *Engine) failQueued(err error) {
	for _, m := range e.comms {
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
		switch {
		case p == nil:
		case p.conn != nil:
			e.failUnsent(p, err)
		default:
			for r := p.sendq.pop(); r != nil; r = p.sendq.pop() {
				e.finish(r, err)
			}
		}
	}
	for _, pr := range e.probes {
		select {
		case pr.found <- struct{}{}:
		default:
		}
	}
}

// failActive ends what is in the hands of a peer's state machine.
func (e *Engine) failActive(p *peer, err error) {
	if p.conn != nil {
		e.failExtended(p, err)
		return
	}
	if r := p.sending; r != nil {
		p.sending = nil
		if !r.orphan {
			e.finish(r, err)
		}
	}
	if r := p.recving; r != nil {
		p.recving = nil
		if !r.orphan {
			e.finish(r, err)
		}
	}
}

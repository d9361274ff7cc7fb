package mpe

import (
	"errors"
	"fmt"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// advance begins all steps that can, and ends the call if there are none left. Messages
// begin before steps without one.
func (x *collectiveOp) advance() {
	for x.failed == nil {
		for x.failed == nil {
			step, number, ok := x.progress.Next()
			if !ok {
				break
			}
			if step.Sends() || step.Receives() {
				x.post(step, number)
			} else {
				x.local = append(x.local, localStep{*step, number})
			}
		}
		if len(x.local) == 0 || x.failed != nil {
			break
		}
		s := x.local[0]
		x.local = append(x.local[:0], x.local[1:]...)
		x.work(&s)
	}
	if len(x.under) == 0 && x.computing == 0 && (x.failed != nil || x.progress.Over()) {
		x.end(x.failed)
	}
}

// blanks is what messages without content are made of.
var blanks [16]byte

// view gives the memory of a place.
func (x *collectiveOp) view(at coll.Loc, n int) ([]byte, error) {
	var b []byte
	switch at.Buf {
	case coll.SendBuf:
		b = x.Send
	case coll.RecvBuf:
		b = x.Recv
	case coll.Scratch:
		b = x.scratch
	case coll.Blank:
		b = blanks[:]
	}
	if at.Off < 0 || n < 0 || at.Off > len(b)-n {
		return nil, x.refuse("it needs %d bytes at %d of the %v, which has %d", n, at.Off, at.Buf, len(b))
	}
	return b[at.Off : at.Off+n : at.Off+n], nil
}

// post posts the message of a step.
func (x *collectiveOp) post(s *coll.Step, number int) {
	var err error
	switch s.Kind {
	case coll.StepForward:
		err = x.forward(s, number)
	case coll.StepSend:
		var buf []byte
		if buf, err = x.view(s.From, s.Len); err == nil {
			r := x.request(OpSend, s.Peer, number, buf)
			if s.Piece > 0 {
				r.flow = &flow{} // so that it is not advertised whole
			}
			err = x.start(r)
		}
	default:
		var buf []byte
		if buf, err = x.view(s.Into, s.Len); err == nil {
			if s.Into.Buf == coll.Blank { // another rank's token may be longer than ours
				buf = x.wasted[:]
			}
			err = x.start(x.request(OpRecv, s.Peer, number, buf))
		}
	}
	if err != nil {
		x.fail(number, err)
	}
}

// request makes the request of a message, to or from a rank of the communicator.
func (x *collectiveOp) request(kind OpKind, peer, number int, buf []byte) *Request {
	e := x.e
	r := newRequest()
	*r = Request{
		kind: kind, peer: x.Members[peer], p: e.peers[x.Members[peer]], tag: int32(x.Tag), comm: x.Comm,
		datatype: x.Datatype, anyDatatype: x.AnyDatatype, buf: buf, call: x, step: int32(number),
	}
	if r.p.limits.NoComms {
		r.comm, r.tag = 0, 0
	}
	r.status.Peer = r.peer
	e.nextID++
	r.id, r.posted = e.nextID, e.at
	return r
}

// start posts a request of the call.
func (x *collectiveOp) start(r *Request) error {
	e := x.e
	op := Operation{Kind: r.kind, Peer: r.peer, Tag: int(r.tag), Comm: r.comm, Buf: r.buf}
	if e.state != running {
		return ErrClosed
	}
	if err := e.check(&op); err != nil {
		return err
	}
	x.under = append(x.under, r)
	var err error
	switch {
	case r.kind == OpRecv:
		err = e.postRecv(r)
	default:
		r.p.send(r, true)
	}
	if err != nil {
		x.drop(r)
	}
	return err
}

// drop takes a request out of those under way.
func (x *collectiveOp) drop(r *Request) {
	for i, u := range x.under {
		if u == r {
			last := len(x.under) - 1
			x.under[i], x.under[last] = x.under[last], nil
			x.under = x.under[:last]
			return
		}
	}
}

// work does a step that has no message.
func (x *collectiveOp) work(s *localStep) {
	from, err := x.view(s.From, s.Len)
	if err != nil && s.Kind != coll.StepJoin {
		x.fail(s.number, err)
		return
	}
	var into []byte
	switch s.Kind {
	case coll.StepJoin:
	default:
		if into, err = x.view(s.Into, s.Len); err != nil {
			x.fail(s.number, err)
			return
		}
		if x.User != nil && s.Kind != coll.StepCopy {
			x.compute(s.Kind, s.number, into, from)
			return
		}
		_ = x.combine(s.Kind, into, from) // only the user's operation has errors
	}
	x.progress.Done(s.number)
}

// combine does the work of a step on its bytes. The error is that of the user's operation.
func (x *collectiveOp) combine(kind coll.Kind, into, from []byte) error {
	switch kind {
	case coll.StepReduce:
		return x.apply(from, into)
	case coll.StepReduceRight: // from = into ∘ from, which may be lost
		if err := x.apply(into, from); err != nil {
			return err
		}
	}
	copy(into, from)
	return nil
}

// apply calls the operation: inout = in ∘ inout.
func (x *collectiveOp) apply(in, inout []byte) error {
	if x.User != nil {
		return x.User(in, inout)
	}
	x.reduce(inout, in)
	return nil
}

// compute has a user's function called, which may take long.
func (x *collectiveOp) compute(kind coll.Kind, number int, into, from []byte) {
	x.computing++
	x.e.driver.compute(x, number, func() error { return x.combine(kind, into, from) })
}

// computed notes that a user's function has ended, with err.
func (e *core) computed(x *collectiveOp, number int, err error) {
	x.computing--
	switch {
	case x.failed != nil:
	case err != nil:
		x.fail(number, err)
	default:
		x.progress.Done(number)
	}
	e.resumed = append(e.resumed, x)
	e.flush()
}

// advanceCollectives has calls whose steps have ended go on. It is called at the end of an event.
func (e *core) advanceCollectives() {
	for len(e.ended) > 0 || len(e.resumed) > 0 || len(e.ready) > 0 || len(e.aborts) > 0 {
		if last := len(e.ready) - 1; last >= 0 {
			o := e.ready[last]
			e.ready = e.ready[:last]
			e.nextInTurn(o)
			continue
		}
		if last := len(e.resumed) - 1; last >= 0 {
			x := e.resumed[last]
			e.resumed = e.resumed[:last]
			if !x.over {
				x.advance()
			}
			continue
		}
		// Aborts come last: a call that can complete does.
		if len(e.aborts) > 0 && len(e.ended) == 0 {
			f := e.aborts[0]
			e.aborts = append(e.aborts[:0], e.aborts[1:]...)
			e.onAbort(&f)
			continue
		}
		// All that have ended are noted before anything new begins.
		for i := 0; i < len(e.ended); i++ {
			r := e.ended[i]
			x := r.call
			if x == nil { // the call has ended meanwhile
				r.Free()
				continue
			}
			x.ended(r)
			if !x.waking {
				x.waking = true
				e.woken = append(e.woken, x)
			}
		}
		clear(e.ended)
		e.ended = e.ended[:0]
		for i := 0; i < len(e.woken); i++ {
			x := e.woken[i]
			e.woken[i] = nil
			x.waking = false
			x.advance()
		}
		e.woken = e.woken[:0]
	}
}

// ended notes that a request of the call has.
func (x *collectiveOp) ended(r *Request) {
	x.drop(r)
	number, err := int(r.step), r.err
	if err == nil && x.failed == nil {
		s := x.progress.Step(number)
		if r.kind == OpRecv && s.Into.Buf != coll.Blank && r.status.Bytes != int64(s.Len) {
			err = fmt.Errorf("it has %d bytes: %w", r.status.Bytes, ErrMismatch)
		}
	}
	half := r.flow
	switch {
	case x.failed != nil:
	case err != nil:
		x.fail(number, err)
	case half != nil && !x.half(r):
		return // the other half of a forward is still under way
	default:
		x.progress.Done(number)
	}
	r.Free()
}

// fail has the call end because of a step: nothing more begins, and what is under way is
// cancelled, or goes on without the call's memory. A user's function that cannot be cancelled
// is waited for.
func (x *collectiveOp) fail(number int, err error) {
	if x.failed != nil {
		return
	}
	if errors.Is(err, extended.ErrAborted) {
		err = fmt.Errorf("%w: %w", ErrCallFailed, err)
	}
	x.failed = x.stepError(number, err)
	x.cancelAll()
	if x.computing > 0 && x.CancelUser != nil {
		x.CancelUser(x.failed)
	}
}

// stepError says which step has failed.
func (x *collectiveOp) stepError(number int, err error) *StepError {
	s := x.progress.Step(number)
	e := &StepError{Collective: x.Call.Collective, Algorithm: x.algorithm.Name, Number: number, Kind: s.Kind, Peer: -1, Bytes: s.Len, Err: err}
	if (s.Sends() || s.Receives()) && s.Peer >= 0 {
		e.Peer = x.Members[s.Peer]
	}
	return e
}

// cancelRequest ends a request that is under way, with err. Its memory is the caller's again.
func (x *collectiveOp) cancelRequest(r *Request, err error) {
	e := x.e
	x.drop(r)
	r.call = nil // it is not noted as ended
	if r.flow != nil && r.flow.send == r {
		r.p.abortSend(r)
	}
	if !r.over() {
		if !e.cancel(r) {
			e.detachStep(r)
		}
		e.finish(r, err)
	}
}

// detachStep lets a message go on without its request. What is received is not kept: no
// later receive asks for it.
func (e *core) detachStep(r *Request) {
	if r.kind == OpRecv {
		r.in.p.discardRecv(r)
		return
	}
	e.detach(r, nil)
}

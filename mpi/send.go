package mpi

import (
	"context"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// Send sends buf to rank dest of c. It returns when buf may be used again, which may be before or after a
// receive has matched. If ctx is done first, the send is cancelled if possible; in any case, the caller owns
// buf again.
func Send[T Number](ctx context.Context, c *Comm, buf []T, dest, tag int) error {
	return c.Send(ctx, numbersOf(buf), dest, tag)
}

// Ssend is like Send, but returns only after a receive has matched (synchronous mode).
func Ssend[T Number](ctx context.Context, c *Comm, buf []T, dest, tag int) error {
	return c.Ssend(ctx, numbersOf(buf), dest, tag)
}

// Rsend is like Send, for a caller that knows that the matching receive has been posted (ready mode). If it has
// not been posted, the standard leaves the result undefined; this package sends the message as Send does.
func Rsend[T Number](ctx context.Context, c *Comm, buf []T, dest, tag int) error {
	return c.Rsend(ctx, numbersOf(buf), dest, tag)
}

// Bsend copies buf into the buffer provided by AttachBuffer, and returns immediately (buffered mode). The error
// is ErrBuffer if the message does not fit.
func Bsend[T Number](c *Comm, buf []T, dest, tag int) error {
	return c.Bsend(numbersOf(buf), dest, tag)
}

// Isend starts Send and returns. buf must not be modified until the request is done.
func Isend[T Number](c *Comm, buf []T, dest, tag int) (Request, error) {
	return c.Isend(numbersOf(buf), dest, tag)
}

// Issend starts Ssend and returns.
func Issend[T Number](c *Comm, buf []T, dest, tag int) (Request, error) {
	return c.Issend(numbersOf(buf), dest, tag)
}

// Irsend starts Rsend and returns.
func Irsend[T Number](c *Comm, buf []T, dest, tag int) (Request, error) {
	return c.Irsend(numbersOf(buf), dest, tag)
}

// Ibsend is like Bsend, but returns a request, which is already done.
func Ibsend[T Number](c *Comm, buf []T, dest, tag int) (Request, error) {
	return c.Ibsend(numbersOf(buf), dest, tag)
}

func (k *call) sendWait(ctx context.Context) error {
	if k.peer == ProcNull {
		return k.check()
	}
	var o mpe.Operation
	if err := k.outgoing(&o); err != nil {
		return err
	}
	p := k.comm.p
	if k.kind == mpe.OpSend && p.dev.SendNow(o.Peer, o.Tag, o.Comm, o.Buf, o.Datatype, true) {
		return nil
	}
	o.Blocking = true
	op, err := p.dev.Start(o)
	if err != nil {
		return k.fail(err)
	}
	var st Status
	return k.wait(ctx, op, &st)
}

// immediate starts the operation and returns its request.
func (k *call) immediate() (Request, error) {
	if k.peer == ProcNull {
		return k.nullRequest()
	}
	var o mpe.Operation
	if err := k.operation(&o); err != nil {
		return Request{}, err
	}
	p := k.comm.p
	if k.kind == mpe.OpSend && p.dev.SendNow(o.Peer, o.Tag, o.Comm, o.Buf, o.Datatype, false) {
		return k.completed(), nil
	}
	op, err := p.dev.Start(o)
	if err != nil {
		return Request{}, k.fail(err)
	}
	if k.sends() {
		if atOnce(op) {
			return k.completed(), nil
		}
		if q := &p.resting; q.sends != nil && k.scattered == nil && q.sends.MayRest(op) {
			return q.add(k, op), nil
		}
	}
	return k.request(op, false), nil
}

// completed returns the request of a completed send.
func (k *call) completed() Request {
	k.giveBack()
	return k.comm.p.completed.add()
}

// atOnce reports whether a send completed successfully before its call returned; if so, it frees the operation.
func atOnce(op mpe.Op) bool {
	if st, err := op.Ended(); st == nil || err != nil {
		return false
	}
	op.Free()
	return true
}

// nullRequest returns the request of a call with ProcNull, which is already done.
func (k *call) nullRequest() (Request, error) {
	if err := k.check(); err != nil {
		return Request{}, err
	}
	return k.request(nil, true), nil
}

// null returns the status of a call that has no message.
func (k *call) null() Status {
	if k.sends() {
		return emptyStatus
	}
	return nullStatus
}

package mpi

import (
	"context"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// Send sends buf to rank dest of c. It returns when buf may be used again, which may be before or after a
// receive has matched. If ctx is done first, the send is cancelled if possible; in any case, the caller owns
// buf again.
func Send[T Number](ctx context.Context, c *Comm, buf []T, dest, tag int) error {
	return c.Send(ctx, numberBuffer(buf), dest, tag)
}

// Ssend is like Send, but returns only after a receive has matched (synchronous mode).
func Ssend[T Number](ctx context.Context, c *Comm, buf []T, dest, tag int) error {
	return c.Ssend(ctx, numberBuffer(buf), dest, tag)
}

// Rsend is like Send, for a caller that knows that the matching receive has been posted (ready mode). If it has
// not been posted, the standard leaves the result undefined; this package sends the message as Send does.
func Rsend[T Number](ctx context.Context, c *Comm, buf []T, dest, tag int) error {
	return c.Rsend(ctx, numberBuffer(buf), dest, tag)
}

// Bsend copies buf into the buffer provided by AttachBuffer, and returns immediately (buffered mode). The error
// is ErrBuffer if the message does not fit.
func Bsend[T Number](c *Comm, buf []T, dest, tag int) error {
	return c.Bsend(numberBuffer(buf), dest, tag)
}

// Isend starts Send and returns. buf must not be modified until the request is done.
func Isend[T Number](c *Comm, buf []T, dest, tag int) (Request, error) {
	return c.Isend(numberBuffer(buf), dest, tag)
}

// Issend starts Ssend and returns.
func Issend[T Number](c *Comm, buf []T, dest, tag int) (Request, error) {
	return c.Issend(numberBuffer(buf), dest, tag)
}

// Irsend starts Rsend and returns.
func Irsend[T Number](c *Comm, buf []T, dest, tag int) (Request, error) {
	return c.Irsend(numberBuffer(buf), dest, tag)
}

// Ibsend is like Bsend, but returns a request, which is already done.
func Ibsend[T Number](c *Comm, buf []T, dest, tag int) (Request, error) {
	return c.Ibsend(numberBuffer(buf), dest, tag)
}

// sendBlocking implements the blocking sends except Bsend. A message that the device can send at once needs no
// operation.
func (k *call) sendBlocking(ctx context.Context) error {
	if k.peer == ProcNull {
		return k.check()
	}
	var o mpe.Operation
	if err := k.buildSend(&o); err != nil {
		return err
	}
	p := k.comm.proc
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

// startRequest starts an operation and returns a request for it.
func (k *call) startRequest() (Request, error) {
	if k.peer == ProcNull {
		return k.nullRequest()
	}
	var o mpe.Operation
	if err := k.buildOperation(&o); err != nil {
		return Request{}, err
	}
	p := k.comm.proc
	if k.kind == mpe.OpSend && p.dev.SendNow(o.Peer, o.Tag, o.Comm, o.Buf, o.Datatype, false) {
		return k.completedRequest(), nil
	}
	op, err := p.dev.Start(o)
	if err != nil {
		return Request{}, k.fail(err)
	}
	if k.isSend() {
		if freeIfDone(op) {
			return k.completedRequest(), nil
		}
		if q := &p.resting; q.sends != nil && k.packedBuf == nil && q.sends.MayRest(op) {
			return q.add(k, op), nil
		}
	}
	return k.newRequest(op, false), nil
}

// completedRequest returns the request of a send that has completed.
func (k *call) completedRequest() Request {
	k.releaseCopy()
	return k.comm.proc.completed.add()
}

// freeIfDone reports whether a send completed successfully before its call returned; if so, it frees the operation.
func freeIfDone(op mpe.Op) bool {
	if st, err := op.Result(); st == nil || err != nil {
		return false
	}
	op.Free()
	return true
}

// nullRequest returns the request of a call with ProcNull, which is complete from the start.
func (k *call) nullRequest() (Request, error) {
	if err := k.check(); err != nil {
		return Request{}, err
	}
	return k.newRequest(nil, true), nil
}

// noMessageStatus returns the status of a call without a message.
func (k *call) noMessageStatus() Status {
	if k.isSend() {
		return emptyStatus
	}
	return nullStatus
}

package mpi

import (
	"context"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// Send sends buf to rank dest of c. It returns when buf may be used again,
// which may be before or after a receive has matched. When ctx ends first, the
// send is taken back if it can be, and buf is the caller's again in any case.
func Send[T Number](ctx context.Context, c *Comm, buf []T, dest, tag int) error {
	return c.send(ctx, "Send", mpe.OpSend, view(buf), dest, tag)
}

// Ssend is Send, and returns only when a receive has matched (synchronous
// mode).
func Ssend[T Number](ctx context.Context, c *Comm, buf []T, dest, tag int) error {
	return c.send(ctx, "Ssend", mpe.OpSendSync, view(buf), dest, tag)
}

// Rsend is Send for a caller who knows that the matching receive has been
// posted (ready mode). The standard leaves open what happens if it has not;
// here the message is sent as Send does.
func Rsend[T Number](ctx context.Context, c *Comm, buf []T, dest, tag int) error {
	return c.send(ctx, "Rsend", mpe.OpSend, view(buf), dest, tag)
}

// Bsend copies buf into the buffer that AttachBuffer provides, and returns at
// once (buffered mode). The error is ErrBuffer if there is not enough room.
func Bsend[T Number](c *Comm, buf []T, dest, tag int) error {
	return c.bsend(outCall(c, "Bsend", dest, tag), view(buf))
}

// Isend starts Send and returns. buf must not be written to until the request
// has ended.
func Isend[T Number](c *Comm, buf []T, dest, tag int) (*Request, error) {
	return c.isend("Isend", mpe.OpSend, view(buf), dest, tag)
}

// Issend starts Ssend and returns.
func Issend[T Number](c *Comm, buf []T, dest, tag int) (*Request, error) {
	return c.isend("Issend", mpe.OpSendSync, view(buf), dest, tag)
}

// Irsend starts Rsend and returns.
func Irsend[T Number](c *Comm, buf []T, dest, tag int) (*Request, error) {
	return c.isend("Irsend", mpe.OpSend, view(buf), dest, tag)
}

// Ibsend is Bsend with a request, which has ended when it returns.
func Ibsend[T Number](c *Comm, buf []T, dest, tag int) (*Request, error) {
	k := outCall(c, "Ibsend", dest, tag)
	if err := c.bsend(k, view(buf)); err != nil {
		return nil, err
	}
	return &Request{call: k, state: ended, status: emptyStatus}, nil
}

func outCall(c *Comm, op string, dest, tag int) call {
	return call{comm: c, op: op, peer: dest, tag: tag, send: true}
}

func (c *Comm) send(ctx context.Context, name string, kind mpe.OpKind, w words, dest, tag int) error {
	k := outCall(c, name, dest, tag)
	if dest == ProcNull {
		return k.check()
	}
	o, err := k.outgoing(kind, w)
	if err != nil {
		return err
	}
	op, err := c.p.dev.Start(o)
	if err != nil {
		return k.fail(err)
	}
	_, err = k.end(op.Wait(ctx))
	return err
}

func (c *Comm) isend(name string, kind mpe.OpKind, w words, dest, tag int) (*Request, error) {
	k := outCall(c, name, dest, tag)
	if dest == ProcNull {
		return nullRequest(k)
	}
	o, err := k.outgoing(kind, w)
	if err != nil {
		return nil, err
	}
	return k.post(o)
}

// post hands an operation to the device.
func (k call) post(o mpe.Operation) (*Request, error) {
	op, err := k.comm.p.dev.Start(o)
	if err != nil {
		return nil, k.fail(err)
	}
	return &Request{call: k, state: active, op: op}, nil
}

// nullRequest is a request to or from ProcNull: it has ended.
func nullRequest(k call) (*Request, error) {
	if err := k.check(); err != nil {
		return nil, err
	}
	return &Request{call: k, state: ended, status: k.null()}, nil
}

// null is the status of a call with ProcNull.
func (k call) null() Status {
	if k.send {
		return emptyStatus
	}
	return nullStatus
}

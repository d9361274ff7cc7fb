package mpi

import (
	"context"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// Send sends a buffer to rank dest, as the function Send does with a slice.
func (c *Comm) Send(ctx context.Context, b Buffer, dest, tag int) error {
	var k call
	k.set(c, "Send", mpe.OpSend, dest, tag)
	return k.sendTyped(ctx, &b)
}

// Ssend is like Send, but returns only after a receive has matched (synchronous mode).
func (c *Comm) Ssend(ctx context.Context, b Buffer, dest, tag int) error {
	var k call
	k.set(c, "Ssend", mpe.OpSendSync, dest, tag)
	return k.sendTyped(ctx, &b)
}

// Rsend is like Send, for a caller that knows that the matching receive has been posted (ready mode).
func (c *Comm) Rsend(ctx context.Context, b Buffer, dest, tag int) error {
	var k call
	k.set(c, "Rsend", mpe.OpSend, dest, tag)
	return k.sendTyped(ctx, &b)
}

// Bsend sends a copy of the buffer (buffered mode). The copy occupies space in the buffer attached by
// AttachBuffer.
func (c *Comm) Bsend(b Buffer, dest, tag int) error {
	var k call
	k.set(c, "Bsend", mpe.OpSend, dest, tag)
	return k.bsendTyped(&b)
}

// Recv receives a message into a buffer, as the function Recv does into a slice. Gaps between elements are not
// written. Elements and CountOf return the number of elements received.
func (c *Comm) Recv(ctx context.Context, b Buffer, source, tag int) (st Status, err error) {
	err = c.RecvStatus(ctx, b, source, tag, &st)
	return st, err
}

// RecvStatus is like Recv but writes the status to *to. This saves the caller a copy, which takes some nanoseconds.
func (c *Comm) RecvStatus(ctx context.Context, b Buffer, source, tag int, to *Status) error {
	var k call
	k.set(c, "Recv", mpe.OpRecv, source, tag)
	if err := k.setBuffer(&b); err != nil {
		*to = emptyStatus
		return err
	}
	err := k.recv(ctx, to)
	k.releaseCopy()
	return err
}

// Isend starts Send and returns. The buffer must not be modified until the request is done.
func (c *Comm) Isend(b Buffer, dest, tag int) (Request, error) {
	var k call
	k.set(c, "Isend", mpe.OpSend, dest, tag)
	return k.startTyped(&b)
}

// Issend starts Ssend and returns.
func (c *Comm) Issend(b Buffer, dest, tag int) (Request, error) {
	var k call
	k.set(c, "Issend", mpe.OpSendSync, dest, tag)
	return k.startTyped(&b)
}

// Irsend starts Rsend and returns.
func (c *Comm) Irsend(b Buffer, dest, tag int) (Request, error) {
	var k call
	k.set(c, "Irsend", mpe.OpSend, dest, tag)
	return k.startTyped(&b)
}

// Ibsend is like Bsend, but returns a request, which is already done.
func (c *Comm) Ibsend(b Buffer, dest, tag int) (Request, error) {
	var k call
	k.set(c, "Ibsend", mpe.OpSend, dest, tag)
	if err := k.bsendTyped(&b); err != nil {
		return Request{}, err
	}
	return k.completedRequest(), nil
}

// Irecv starts Recv and returns. The caller must not access the buffer until it has waited for the request. Only then
// does the buffer contain the elements.
func (c *Comm) Irecv(b Buffer, source, tag int) (Request, error) {
	var k call
	k.set(c, "Irecv", mpe.OpRecv, source, tag)
	return k.startTyped(&b)
}

// SendInit returns a persistent request that performs Send each time Start starts it.
func (c *Comm) SendInit(b Buffer, dest, tag int) (Request, error) {
	var k call
	k.set(c, "SendInit", mpe.OpSend, dest, tag)
	return k.persistentTyped(&b, unbuffered)
}

// SsendInit makes a persistent request for Ssend.
func (c *Comm) SsendInit(b Buffer, dest, tag int) (Request, error) {
	var k call
	k.set(c, "SsendInit", mpe.OpSendSync, dest, tag)
	return k.persistentTyped(&b, unbuffered)
}

// RsendInit makes a persistent request for Rsend.
func (c *Comm) RsendInit(b Buffer, dest, tag int) (Request, error) {
	var k call
	k.set(c, "RsendInit", mpe.OpSend, dest, tag)
	return k.persistentTyped(&b, unbuffered)
}

// BsendInit makes a persistent request for Bsend.
func (c *Comm) BsendInit(b Buffer, dest, tag int) (Request, error) {
	var k call
	k.set(c, "BsendInit", mpe.OpSend, dest, tag)
	return k.persistentTyped(&b, buffered)
}

// RecvInit makes a persistent request for Recv.
func (c *Comm) RecvInit(b Buffer, source, tag int) (Request, error) {
	var k call
	k.set(c, "RecvInit", mpe.OpRecv, source, tag)
	return k.persistentTyped(&b, unbuffered)
}

// Sendrecv sends one buffer and receives into another, concurrently.
func (c *Comm) Sendrecv(ctx context.Context, send Buffer, dest, sendtag int, recv Buffer, source, recvtag int) (Status,
	error) {
	var out, in call
	out.set(c, "Sendrecv", mpe.OpSend, dest, sendtag)
	in.set(c, "Sendrecv", mpe.OpRecv, source, recvtag)
	return sendrecvTyped(ctx, &out, &send, &in, &recv, false)
}

// SendrecvReplace sends the contents of a buffer and receives into it.
func (c *Comm) SendrecvReplace(ctx context.Context, b Buffer, dest, sendtag, source, recvtag int) (Status, error) {
	var out, in call
	out.set(c, "SendrecvReplace", mpe.OpSend, dest, sendtag)
	in.set(c, "SendrecvReplace", mpe.OpRecv, source, recvtag)
	return sendrecvTyped(ctx, &out, &b, &in, &b, true)
}

// sendTyped sends a buffer in the way that the call's kind selects. Non-contiguous elements are packed into a copy,
// which is released when the send is complete.
func (k *call) sendTyped(ctx context.Context, b *Buffer) error {
	if err := k.setBuffer(b); err != nil {
		return err
	}
	err := k.sendBlocking(ctx)
	k.releaseCopy()
	return err
}

func (k *call) bsendTyped(b *Buffer) error {
	if err := k.setBuffer(b); err != nil {
		return err
	}
	err := k.bsend()
	k.releaseCopy() // bsend has already copied the message
	return err
}

// startTyped returns a request, which then owns the packed copy.
func (k *call) startTyped(b *Buffer) (Request, error) {
	if err := k.setBuffer(b); err != nil {
		return Request{}, err
	}
	r, err := k.startRequest()
	if err != nil {
		k.releaseCopy()
	}
	return r, err
}

// persistentTyped returns a persistent request, which owns the packed copy until it is freed. Each start packs the
// elements again.
func (k *call) persistentTyped(b *Buffer, again persistence) (Request, error) {
	if err := k.setBuffer(b); err != nil {
		return Request{}, err
	}
	r, err := k.newPersistent(again)
	if err != nil {
		k.releaseCopy()
	}
	return r, err
}

func sendrecvTyped(ctx context.Context, out *call, send *Buffer, in *call, recv *Buffer, replace bool) (st Status,
	err error) {
	if err := out.setBuffer(send); err != nil {
		return emptyStatus, err
	}
	if err = in.setBuffer(recv); err != nil {
		out.releaseCopy()
		return emptyStatus, err
	}
	if replace { // a function value would move both calls to the heap
		err = sendrecvReplace(ctx, out, in, &st)
	} else {
		err = sendrecv(ctx, out, in, &st)
	}
	out.releaseCopy()
	in.releaseCopy()
	return st, err
}

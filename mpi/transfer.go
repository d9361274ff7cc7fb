package mpi

import (
	"context"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// Send sends a buffer to rank dest, like the function Send a slice.
func (c *Comm) Send(ctx context.Context, b Buffer, dest, tag int) error {
	k := call{comm: c, op: "Send", kind: mpe.OpSend, peer: dest, tag: tag}
	return k.sendTyped(ctx, &b)
}

// Ssend is Send that returns when a receive has matched (synchronous mode).
func (c *Comm) Ssend(ctx context.Context, b Buffer, dest, tag int) error {
	k := call{comm: c, op: "Ssend", kind: mpe.OpSendSync, peer: dest, tag: tag}
	return k.sendTyped(ctx, &b)
}

// Rsend is Send to a rank whose receive is posted already (ready mode).
func (c *Comm) Rsend(ctx context.Context, b Buffer, dest, tag int) error {
	k := call{comm: c, op: "Rsend", kind: mpe.OpSend, peer: dest, tag: tag}
	return k.sendTyped(ctx, &b)
}

// Bsend sends a copy, which takes room of the buffer of AttachBuffer (buffered mode).
func (c *Comm) Bsend(b Buffer, dest, tag int) error {
	k := call{comm: c, op: "Bsend", kind: mpe.OpSend, peer: dest, tag: tag}
	return k.bsendTyped(&b)
}

// Recv receives a message into a buffer, like the function Recv into a slice. Nothing between the
// elements is written. Elements and CountOf give how many have come.
func (c *Comm) Recv(ctx context.Context, b Buffer, source, tag int) (Status, error) {
	k := call{comm: c, op: "Recv", kind: mpe.OpRecv, peer: source, tag: tag}
	if err := k.typed(&b); err != nil {
		return emptyStatus, err
	}
	defer k.giveBack()
	var st Status
	err := k.recv(ctx, &st)
	return st, err
}

// Isend starts Send and returns. The buffer must not be written to until the request has ended.
func (c *Comm) Isend(b Buffer, dest, tag int) (Request, error) {
	k := call{comm: c, op: "Isend", kind: mpe.OpSend, peer: dest, tag: tag}
	return k.startTyped(&b)
}

// Issend starts Ssend and returns.
func (c *Comm) Issend(b Buffer, dest, tag int) (Request, error) {
	k := call{comm: c, op: "Issend", kind: mpe.OpSendSync, peer: dest, tag: tag}
	return k.startTyped(&b)
}

// Irsend starts Rsend and returns.
func (c *Comm) Irsend(b Buffer, dest, tag int) (Request, error) {
	k := call{comm: c, op: "Irsend", kind: mpe.OpSend, peer: dest, tag: tag}
	return k.startTyped(&b)
}

// Ibsend is Bsend with a request, which has ended.
func (c *Comm) Ibsend(b Buffer, dest, tag int) (Request, error) {
	k := call{comm: c, op: "Ibsend", kind: mpe.OpSend, peer: dest, tag: tag}
	if err := k.bsendTyped(&b); err != nil {
		return Request{}, err
	}
	return k.request(nil, true), nil
}

// Irecv starts Recv and returns. The elements are in the buffer when the request has been waited
// for, and it must not be touched until then.
func (c *Comm) Irecv(b Buffer, source, tag int) (Request, error) {
	k := call{comm: c, op: "Irecv", kind: mpe.OpRecv, peer: source, tag: tag}
	return k.startTyped(&b)
}

// SendInit makes a persistent request of Send, which Start starts.
func (c *Comm) SendInit(b Buffer, dest, tag int) (Request, error) {
	k := call{comm: c, op: "SendInit", kind: mpe.OpSend, peer: dest, tag: tag}
	return k.persistentTyped(&b, unbuffered)
}

// SsendInit makes a persistent request of Ssend.
func (c *Comm) SsendInit(b Buffer, dest, tag int) (Request, error) {
	k := call{comm: c, op: "SsendInit", kind: mpe.OpSendSync, peer: dest, tag: tag}
	return k.persistentTyped(&b, unbuffered)
}

// RsendInit makes a persistent request of Rsend.
func (c *Comm) RsendInit(b Buffer, dest, tag int) (Request, error) {
	k := call{comm: c, op: "RsendInit", kind: mpe.OpSend, peer: dest, tag: tag}
	return k.persistentTyped(&b, unbuffered)
}

// BsendInit makes a persistent request of Bsend.
func (c *Comm) BsendInit(b Buffer, dest, tag int) (Request, error) {
	k := call{comm: c, op: "BsendInit", kind: mpe.OpSend, peer: dest, tag: tag}
	return k.persistentTyped(&b, buffered)
}

// RecvInit makes a persistent request of Recv.
func (c *Comm) RecvInit(b Buffer, source, tag int) (Request, error) {
	k := call{comm: c, op: "RecvInit", kind: mpe.OpRecv, peer: source, tag: tag}
	return k.persistentTyped(&b, unbuffered)
}

// Sendrecv sends one buffer and receives into another one, both at the same time.
func (c *Comm) Sendrecv(ctx context.Context, send Buffer, dest, sendtag int, recv Buffer, source, recvtag int) (Status, error) {
	out := call{comm: c, op: "Sendrecv", kind: mpe.OpSend, peer: dest, tag: sendtag}
	in := call{comm: c, op: "Sendrecv", kind: mpe.OpRecv, peer: source, tag: recvtag}
	return sendrecvTyped(ctx, &out, &send, &in, &recv, sendrecv)
}

// SendrecvReplace sends what is in a buffer and receives into it.
func (c *Comm) SendrecvReplace(ctx context.Context, b Buffer, dest, sendtag, source, recvtag int) (Status, error) {
	out := call{comm: c, op: "SendrecvReplace", kind: mpe.OpSend, peer: dest, tag: sendtag}
	in := call{comm: c, op: "SendrecvReplace", kind: mpe.OpRecv, peer: source, tag: recvtag}
	return sendrecvTyped(ctx, &out, &b, &in, &b, sendrecvReplace)
}

func (k *call) sendTyped(ctx context.Context, b *Buffer) error {
	if err := k.typed(b); err != nil {
		return err
	}
	defer k.giveBack()
	return k.sendWait(ctx)
}

func (k *call) bsendTyped(b *Buffer) error {
	if err := k.typed(b); err != nil {
		return err
	}
	err := k.bsend()
	k.giveBack() // the message is a copy of its own
	return err
}

func (k *call) startTyped(b *Buffer) (Request, error) {
	if err := k.typed(b); err != nil {
		return Request{}, err
	}
	r, err := k.immediate()
	if err != nil {
		k.giveBack()
	}
	return r, err
}

func (k *call) persistentTyped(b *Buffer, again persistence) (Request, error) {
	if err := k.typed(b); err != nil {
		return Request{}, err
	}
	r, err := k.persistent(again)
	if err != nil {
		k.giveBack()
	}
	return r, err
}

func sendrecvTyped(ctx context.Context, out *call, send *Buffer, in *call, recv *Buffer, both func(context.Context, *call, *call, *Status) error) (Status, error) {
	if err := out.typed(send); err != nil {
		return emptyStatus, err
	}
	defer out.giveBack()
	if err := in.typed(recv); err != nil {
		return emptyStatus, err
	}
	defer in.giveBack()
	var st Status
	err := both(ctx, out, in, &st)
	return st, err
}

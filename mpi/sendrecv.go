package mpi

import (
	"bytes"
	"context"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// Sendrecv sends sendbuf to rank dest and receives from rank source into
// recvbuf, both at the same time, and returns when both have ended. Rings and
// exchanges of edges do not block each other this way. The buffers must not
// overlap; the ranks may be the same, or ProcNull.
func Sendrecv[S, R Number](ctx context.Context, c *Comm, sendbuf []S, dest, sendtag int, recvbuf []R, source, recvtag int) (Status, error) {
	return c.sendrecv(ctx, "Sendrecv", view(sendbuf), dest, sendtag, view(recvbuf), source, recvtag)
}

// SendrecvReplace sends what is in buf and receives into it. It sends a copy.
func SendrecvReplace[T Number](ctx context.Context, c *Comm, buf []T, dest, sendtag, source, recvtag int) (Status, error) {
	in := view(buf)
	out := in
	if dest != ProcNull {
		out.bytes = bytes.Clone(in.bytes)
	}
	return c.sendrecv(ctx, "SendrecvReplace", out, dest, sendtag, in, source, recvtag)
}

func (c *Comm) sendrecv(ctx context.Context, name string, out words, dest, sendtag int, in words, source, recvtag int) (Status, error) {
	ko, ki := outCall(c, name, dest, sendtag), inCall(c, name, source, recvtag, in)
	if err := ko.check(); err != nil {
		return emptyStatus, err
	}
	// Both are checked before either is posted.
	var send, recv mpe.Operation
	var err error
	if dest != ProcNull {
		if send, err = ko.outgoing(mpe.OpSend, out); err != nil {
			return emptyStatus, err
		}
	}
	if source == ProcNull {
		return nullStatus, c.send(ctx, name, mpe.OpSend, out, dest, sendtag)
	}
	if recv, err = ki.incoming(in); err != nil {
		return emptyStatus, err
	}
	recvOp, err := c.p.dev.Start(recv)
	if err != nil {
		return emptyStatus, ki.fail(err)
	}
	if dest == ProcNull {
		return ki.end(recvOp.Wait(ctx))
	}
	sendOp, err := c.p.dev.Start(send)
	if err != nil {
		recvOp.Cancel()
		// Cancelled or, too late, received: the send's error is what counts.
		_, _ = recvOp.Wait(ctx)
		return emptyStatus, ko.fail(err)
	}
	st, recvErr := ki.end(recvOp.Wait(ctx))
	_, sendErr := ko.end(sendOp.Wait(ctx))
	if recvErr != nil {
		return st, recvErr
	}
	return st, sendErr
}

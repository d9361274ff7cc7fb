package mpi

import (
	"context"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// Sendrecv sends sendbuf to rank dest and, concurrently, receives from rank source into recvbuf. It returns
// when both are done, so that rings and exchanges between neighbours do not deadlock. The buffers must not
// overlap. dest and source may be the same rank, or ProcNull.
func Sendrecv[S, R Number](ctx context.Context, c *Comm, sendbuf []S, dest, sendtag int, recvbuf []R, source,
	recvtag int) (Status, error) {
	return c.Sendrecv(ctx, numberBuffer(sendbuf), dest, sendtag, numberBuffer(recvbuf), source, recvtag)
}

// SendrecvReplace sends a copy of buf, and receives into buf.
func SendrecvReplace[T Number](ctx context.Context, c *Comm, buf []T, dest, sendtag, source, recvtag int) (Status,
	error) {
	return c.SendrecvReplace(ctx, numberBuffer(buf), dest, sendtag, source, recvtag)
}

// sendrecvReplace sends a copy of the message, because the received one may overwrite the buffer before the send
// completes.
func sendrecvReplace(ctx context.Context, out, in *call, to *Status) error {
	if out.peer == ProcNull || out.comm == nil || out.packedBuf != nil { // a packed message is already a copy
		return sendrecv(ctx, out, in, to)
	}
	copies := &out.comm.proc.copies
	b, _ := copies.Get().(*[]byte)
	if b == nil {
		b = new([]byte)
	}
	*b = append((*b)[:0], out.bytes...)
	out.bytes = *b
	err := sendrecv(ctx, out, in, to)
	copies.Put(b)
	return err
}

// sendrecv posts the receive first and the send next, and then waits for both, so that ranks that call it for each
// other cannot deadlock.
func sendrecv(ctx context.Context, out, in *call, to *Status) error {
	*to = emptyStatus
	if err := out.check(); err != nil {
		return err
	}
	// Check both before posting either.
	var o, i mpe.Operation
	if out.peer != ProcNull {
		if err := out.buildSend(&o); err != nil {
			return err
		}
	}
	if in.peer == ProcNull {
		*to = nullStatus
		return out.sendBlocking(ctx)
	}
	if err := in.buildRecv(&i); err != nil {
		return err
	}
	p := out.comm.proc
	recv, err := p.dev.Start(i)
	if err != nil {
		return in.fail(err)
	}
	if out.peer == ProcNull {
		return in.wait(ctx, recv, to)
	}
	send, err := p.dev.Start(o)
	if err != nil {
		recv.Cancel()
		// The receive has been cancelled or has completed before that was possible. Report the send's error.
		_, _ = recv.Await(ctx)
		recv.Free()
		return out.fail(err)
	}
	if in.mayDeadEnd() || out.mayDeadEnd() {
		ctx = p.awaitBoth(ctx, recv, send)
	}
	recvErr := in.wait(ctx, recv, to)
	sent, sendErr := send.Await(ctx)
	if sendErr != nil && (recvErr == nil || causedBySend(recvErr, sendErr)) {
		recvErr = out.finishFailed(new(Status), sent, sendErr)
	}
	send.Free()
	return recvErr
}

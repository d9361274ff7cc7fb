package mpi

import (
	"context"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// Recv receives a message into buf, from rank source of c (or AnySource) and with tag (or AnyTag). The message
// may be shorter than buf; Count returns its length. If it is longer, the error is ErrTruncate, and buf holds
// its beginning. If ctx is done first, the receive is cancelled.
//
// Deployed nodes distinguish float32 from other numbers. From such a node, a []float32 receives messages sent
// as float, a []uint8 or []int8 receives both kinds, and any other slice receives messages sent as int.
func Recv[T Number](ctx context.Context, c *Comm, buf []T, source, tag int) (Status, error) {
	return c.Recv(ctx, numberBuffer(buf), source, tag)
}

// Irecv starts Recv and returns. buf must not be accessed until the request is done.
func Irecv[T Number](c *Comm, buf []T, source, tag int) (Request, error) {
	return c.Irecv(numberBuffer(buf), source, tag)
}

// Probe waits for a message that a receive from source with tag would get. It returns the message's status
// without receiving the message.
func Probe(ctx context.Context, c *Comm, source, tag int) (Status, error) {
	k := call{comm: c, op: "Probe", kind: mpe.OpRecv, peer: source, tag: tag}
	var st Status
	_, err := k.probe(ctx, &st, true)
	return st, err
}

// Iprobe is Probe without waiting. The bool reports whether a message was found.
func Iprobe(c *Comm, source, tag int) (Status, bool, error) {
	k := call{comm: c, op: "Iprobe", kind: mpe.OpRecv, peer: source, tag: tag}
	var st Status
	found, err := k.probe(context.Background(), &st, false)
	return st, found, err
}

// recv implements Recv. It sets *to even if it fails.
func (k *call) recv(ctx context.Context, to *Status) error {
	if k.peer == ProcNull {
		*to = nullStatus
		return k.check()
	}
	*to = emptyStatus
	var o mpe.Operation
	if err := k.buildRecv(&o); err != nil {
		return err
	}
	op, err := k.comm.proc.dev.Start(o)
	if err != nil {
		return k.fail(err)
	}
	return k.wait(ctx, op, to)
}

func (k *call) probe(ctx context.Context, to *Status, wait bool) (bool, error) {
	if k.peer == ProcNull {
		*to = nullStatus
		return true, k.check()
	}
	*to = emptyStatus
	var m mpe.Match
	if err := k.match(&m); err != nil {
		return false, err
	}
	st, found, err := k.comm.proc.dev.Probe(ctx, m, wait)
	switch {
	case err != nil:
		return false, k.fail(err)
	case !found:
		return false, nil
	}
	err = k.status(to, &st)
	return err == nil, err
}

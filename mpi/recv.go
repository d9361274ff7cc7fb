package mpi

import (
	"context"
)

// Recv receives a message from rank source of c, or AnySource, with tag, or
// AnyTag, into buf. The message may be shorter than buf: Count tells its
// length. If it is longer, the error is ErrTruncate, and buf holds its
// beginning. When ctx ends first, the receive is taken back.
//
// Deployed nodes tell float32 from other numbers: there, a []float32 receives
// what was sent as float, a []uint8 or []int8 both, and any other slice what
// was sent as int.
func Recv[T Number](ctx context.Context, c *Comm, buf []T, source, tag int) (Status, error) {
	return c.recv(ctx, "Recv", view(buf), source, tag)
}

// Irecv starts Recv and returns. buf must not be touched until the request has
// ended.
func Irecv[T Number](c *Comm, buf []T, source, tag int) (*Request, error) {
	w := view(buf)
	k := inCall(c, "Irecv", source, tag, w)
	if source == ProcNull {
		return nullRequest(k)
	}
	o, err := k.incoming(w)
	if err != nil {
		return nil, err
	}
	return k.post(o)
}

// Probe waits for a message that a receive from source with tag would get, and
// describes it without receiving it.
func Probe(ctx context.Context, c *Comm, source, tag int) (Status, error) {
	st, _, err := c.probe(ctx, inCall(c, "Probe", source, tag, words{}), true)
	return st, err
}

// Iprobe is Probe for a message that is there already. The bool tells whether
// one is.
func Iprobe(c *Comm, source, tag int) (Status, bool, error) {
	return c.probe(context.Background(), inCall(c, "Iprobe", source, tag, words{}), false)
}

func inCall(c *Comm, op string, source, tag int, w words) call {
	return call{comm: c, op: op, peer: source, tag: tag, room: len(w.bytes)}
}

func (c *Comm) recv(ctx context.Context, name string, w words, source, tag int) (Status, error) {
	k := inCall(c, name, source, tag, w)
	if source == ProcNull {
		return k.null(), k.check()
	}
	o, err := k.incoming(w)
	if err != nil {
		return emptyStatus, err
	}
	op, err := c.p.dev.Start(o)
	if err != nil {
		return emptyStatus, k.fail(err)
	}
	return k.end(op.Wait(ctx))
}

func (c *Comm) probe(ctx context.Context, k call, wait bool) (Status, bool, error) {
	if k.peer == ProcNull {
		return nullStatus, true, k.check()
	}
	m, err := k.match()
	if err != nil {
		return emptyStatus, false, err
	}
	st, found, err := c.p.dev.Probe(ctx, m, wait)
	if err != nil {
		return emptyStatus, false, k.fail(err)
	}
	if !found {
		return emptyStatus, false, nil
	}
	s, err := k.status(st)
	return s, err == nil, err
}

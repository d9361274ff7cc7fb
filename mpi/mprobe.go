package mpi

import (
	"context"
	"sync/atomic"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// Message is a message found by a matched probe (section 3.8.2). No other receive gets it, and it must be
// received exactly once.
type Message struct {
	call       call // with the message's source and tag
	claim      int
	received   atomic.Bool
	isProcNull bool
}

// Mprobe is like Probe but reserves the message, so that only Mrecv and the methods of the Message can receive it.
//
// The error is ErrComm if messages may come from a rank, such as a deployed node, whose wire does not support
// tags or communicators. It is ErrOther if the limit on claimed messages is reached.
func Mprobe(ctx context.Context, c *Comm, source, tag int) (*Message, Status, error) {
	k := call{comm: c, op: "Mprobe", kind: mpe.OpRecv, peer: source, tag: tag}
	m, st, _, err := k.mprobe(ctx, true)
	return m, st, err
}

// Improbe is Mprobe without waiting. The bool reports whether a message was found.
func Improbe(c *Comm, source, tag int) (*Message, Status, bool, error) {
	k := call{comm: c, op: "Improbe", kind: mpe.OpRecv, peer: source, tag: tag}
	return k.mprobe(context.Background(), false)
}

// mprobe implements Mprobe and Improbe. It fails at once if a possible sender's messages cannot be claimed, and not
// only when such a message arrives.
func (k *call) mprobe(ctx context.Context, wait bool) (*Message, Status, bool, error) {
	if k.peer == ProcNull {
		if err := k.check(); err != nil {
			return nil, emptyStatus, false, err
		}
		return &Message{call: *k, isProcNull: true}, nullStatus, true, nil
	}
	match := mpe.Match{Claim: true}
	if err := k.match(&match); err != nil {
		return nil, emptyStatus, false, err
	}
	for i, x := range k.comm.members {
		if x.hasWireLimits && (k.peer == AnySource || k.peer == i) {
			return nil, emptyStatus, false, k.failf(ErrComm, "rank %d has a wire without tags or communicators, from "+
				"which a message cannot be taken out of the matching: use Probe", i)
		}
	}
	st, found, err := k.comm.proc.dev.Probe(ctx, match, wait)
	if err != nil || !found {
		if err != nil {
			err = k.fail(err)
		}
		return nil, emptyStatus, false, err
	}
	var to Status
	if err := k.status(&to, &st); err != nil {
		return nil, emptyStatus, false, err
	}
	if st.Claim == 0 {
		return nil, emptyStatus, false, k.failf(ErrOther, "the limit on claimed messages is reached")
	}
	claimed := &Message{call: *k, claim: st.Claim}
	claimed.call.peer, claimed.call.tag = to.Source, to.Tag
	return claimed, to, true, nil
}

// receiveCall returns the call by which the probed message is received.
func (m *Message) receiveCall(op string) (call, error) {
	if m == nil || m.received.Swap(true) {
		return call{}, errorf(ErrRequest, op, "there is no message: it has been received, or none was found")
	}
	k := m.call
	k.op = op
	if m.isProcNull {
		k.peer = ProcNull
	}
	k.claim = m.claim
	return k, nil
}

// Mrecv receives a message found by a matched probe, like Recv.
func Mrecv[T Number](ctx context.Context, m *Message, buf []T) (Status, error) {
	return m.Recv(ctx, numberBuffer(buf))
}

// Imrecv starts Mrecv and returns.
func Imrecv[T Number](m *Message, buf []T) (Request, error) {
	return m.Irecv(numberBuffer(buf))
}

// Recv receives the message into a buffer, as Mrecv does into a slice.
func (m *Message) Recv(ctx context.Context, b Buffer) (Status, error) {
	k, err := m.receiveCall("Mrecv")
	if err != nil {
		return emptyStatus, err
	}
	if err := k.setBuffer(&b); err != nil {
		m.received.Store(false)
		return emptyStatus, err
	}
	defer k.releaseCopy()
	var st Status
	err = k.recv(ctx, &st)
	return st, err
}

// Irecv starts Recv and returns.
func (m *Message) Irecv(b Buffer) (Request, error) {
	k, err := m.receiveCall("Imrecv")
	if err != nil {
		return Request{}, err
	}
	r, err := k.startTyped(&b)
	if err != nil {
		m.received.Store(false)
	}
	return r, err
}

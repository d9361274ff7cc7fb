package mpe

import (
	"context"
	"fmt"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// Options are the options of Isend, Irecv, Send and Recv. The zero value means an INT message with tag 0
// in the world.
type Options struct {
	Datatype protocol.Datatype
	// AnyDatatype makes a receive match INT and FLOAT alike.
	AnyDatatype bool
	// Tag is 0 to 2³¹−1. Profile v0.9 carries 0 to 255. The cloudfpga profile carries no tag: its messages match in
	// posting order, whatever their tags.
	Tag int
	// AnyTag makes a receive match any tag.
	AnyTag bool
	// Sync makes a send complete only after a receive has matched it, like OpSendSync.
	Sync bool
	// Comm is the communicator's number. Only the extended profile carries it.
	Comm uint32
}

func (o Options) operation(kind OpKind, peer int, buf []byte) Operation {
	op := Operation{Kind: kind, Peer: peer, Tag: o.Tag, Comm: o.Comm, Buf: buf, Datatype: o.Datatype,
		AnyDatatype: o.AnyDatatype}
	if o.AnyTag {
		op.Tag = AnyTag
	}
	if o.Sync && kind == OpSend {
		op.Kind = OpSendSync
	}
	return op
}

// Isend posts a send of data to rank dst. The caller must not modify data until the request completes.
func (e *Engine) Isend(dst int, data []byte, opts Options) (*Request, error) {
	opts.AnyTag = false
	op := opts.operation(OpSend, dst, data)
	return e.Post(&op)
}

// Irecv posts a receive from rank src, or from AnySource. The caller must not use buf until the request completes.
func (e *Engine) Irecv(src int, buf []byte, opts Options) (*Request, error) {
	op := opts.operation(OpRecv, src, buf)
	return e.Post(&op)
}

// Send sends data to rank dst and returns when data may be reused. For a cloudfpga or v0.9 peer, that is when the peer
// has acknowledged the message.
func (e *Engine) Send(ctx context.Context, dst int, data []byte, opts Options) (Status, error) {
	opts.AnyTag = false
	op := opts.operation(OpSend, dst, data)
	op.Blocking = true
	r, err := e.Post(&op)
	if err != nil {
		return Status{}, err
	}
	defer r.Free()
	return r.Wait(ctx)
}

// Recv receives a message from rank src into buf. If the message is longer than buf, the error matches ErrTruncated and
// buf holds its beginning.
func (e *Engine) Recv(ctx context.Context, src int, buf []byte, opts Options) (Status, error) {
	r, err := e.Irecv(src, buf, opts)
	if err != nil {
		return Status{}, err
	}
	defer r.Free()
	return r.Wait(ctx)
}

// Start posts an operation.
func (e *Engine) Start(op Operation) (Op, error) {
	r, err := e.Post(&op)
	if err != nil {
		return nil, err // avoids a nil *Request in an Op
	}
	return r, nil
}

// Post is like Start, but returns a *Request rather than an Op. It is for callers with an *Engine rather than a Device.
func (e *Engine) Post(op *Operation) (*Request, error) {
	if err := e.core.Check(op); err != nil {
		return nil, err
	}
	e.mu.Lock()
	request := e.requests.get()
	req := &request.core
	e.core.Init(req, op)
	request.engine = e
	short := op.Kind == OpSend && e.core.SendShort(req, op.Blocking) // sent before the clock is read
	if !short && !op.NoWait && op.Kind != OpRecv && op.Peer != e.rank {
		if err := awaitCredit(e, op.Peer); err != nil {
			e.core.Refuse(req, err)
			e.unlock()
			request.Free()
			return nil, e.failure.report(fmt.Errorf("rank %d: %w", e.rank, err))
		}
	}
	if !(op.Kind == OpRecv && e.core.WillQueue(req) && e.canReuseTime() || short && !e.core.NeedsTime(op.Peer)) {
		e.core.Begin(e.clock.now())
	}
	err := e.core.Post(req, short, op.Blocking)
	e.unlockAndPoll()
	if err != nil {
		return nil, err
	}
	return request, nil
}

// SendNow implements Device. It sends only single-packet messages to ranks that share memory, and only if no other
// message is queued ahead.
func (e *Engine) SendNow(peer, tag int, comm uint32, buf []byte, datatype protocol.Datatype, blocking bool) bool {
	if !e.core.MaySendNow(peer, tag, len(buf)) {
		return false
	}
	e.mu.Lock()
	sent, needsTime := e.core.SendNow(peer, tag, comm, buf, datatype, blocking)
	if !sent {
		e.mu.Unlock()
		return false
	}
	if needsTime {
		e.core.Begin(e.clock.now())
		e.core.RecordSendNow(peer, buf)
	}
	e.unlockAndPoll()
	return true
}

// unlockAndPoll is like unlock, but for a caller that has posted an operation. It polls the sources if the core asks
// for it.
func (e *Engine) unlockAndPoll() {
	e.postCount++
	out := e.core.End()
	poll := out.Poll
	out.Poll = false
	unlockAfter(e, out)
	if poll {
		e.group.PollOnce()
	}
}

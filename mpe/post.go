package mpe

import (
	"context"
	"fmt"
	"math"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// Options qualify a send or a receive by Isend, Irecv, Send or Recv. The zero
// value is an INT message with tag 0 in the world.
type Options struct {
	Datatype protocol.Datatype
	// AnyDatatype lets a receive match INT and FLOAT alike.
	AnyDatatype bool
	// Tag is 0 to 2³¹−1. The cloudfpga profile does not carry it: there,
	// messages match in the order in which they were posted, whatever their
	// tags; v0.9 carries 0 to 255.
	Tag int
	// AnyTag lets a receive match any tag.
	AnyTag bool
	// Comm is the communicator. Only the extended profile carries one.
	Comm uint32
}

func (o Options) operation(kind OpKind, peer int, buf []byte) Operation {
	op := Operation{Kind: kind, Peer: peer, Tag: o.Tag, Comm: o.Comm, Buf: buf, Datatype: o.Datatype, AnyDatatype: o.AnyDatatype}
	if o.AnyTag {
		op.Tag = AnyTag
	}
	return op
}

// Isend posts a message to rank dst. data is read until the request ends.
func (e *Engine) Isend(dst int, data []byte, opts Options) (*Request, error) {
	opts.AnyTag = false
	return e.post(opts.operation(OpSend, dst, data))
}

// Irecv posts a receive of a message from rank src, or from AnySource. buf must
// not be touched until the request ends.
func (e *Engine) Irecv(src int, buf []byte, opts Options) (*Request, error) {
	return e.post(opts.operation(OpRecv, src, buf))
}

// Send sends data to rank dst. It returns when a cloudfpga or v0.9 peer has
// acknowledged the message, or when data may be used again otherwise.
func (e *Engine) Send(ctx context.Context, dst int, data []byte, opts Options) (Status, error) {
	opts.AnyTag = false
	op := opts.operation(OpSend, dst, data)
	op.Blocking = true
	r, err := e.post(op)
	if err != nil {
		return Status{}, err
	}
	defer r.Free()
	return r.Wait(ctx)
}

// Recv receives a message from rank src into buf. If the message is longer than
// buf, the error matches ErrTruncated and buf holds its beginning.
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
	r, err := e.post(op)
	if err != nil {
		return nil, err // not a nil *Request in an Op
	}
	return r, nil
}

func (e *Engine) post(op Operation) (*Request, error) {
	if err := e.check(&op); err != nil {
		return nil, err
	}
	r := requests.Get().(*Request)
	*r = Request{
		e: e, kind: op.Kind, peer: op.Peer, tag: int32(op.Tag), comm: op.Comm,
		datatype: op.Datatype, anyDatatype: op.AnyDatatype, buf: op.Buf,
	}
	r.status.Peer = op.Peer
	if op.Peer != AnySource {
		r.p = e.peers[op.Peer]
	}
	e.lock()
	defer e.unlock()
	if e.state != running {
		return nil, fmt.Errorf("rank %d: %w", e.rank, ErrClosed)
	}
	e.nextID++
	r.id, r.posted = e.nextID, e.at
	var err error
	switch {
	case op.Kind == OpRecv:
		err = e.postRecv(r)
	case op.Peer == e.rank:
		err = e.sendSelf(r)
	default:
		if r.p.send(r, op.Blocking) {
			return r, nil
		}
	}
	e.flush()
	if err != nil {
		return nil, fmt.Errorf("rank %d: %w", e.rank, err)
	}
	return r, nil
}

// check refuses what the wire cannot carry.
func (e *Engine) check(op *Operation) error {
	recv := op.Kind == OpRecv
	switch {
	case op.Peer == AnySource && recv:
	case op.Peer < 0 || op.Peer >= len(e.peers):
		return fmt.Errorf("rank %d: %w: the cluster has ranks 0 to %d", op.Peer, ErrRank, len(e.peers)-1)
	}
	if int64(op.Tag) > math.MaxInt32 || op.Tag < 0 && !(recv && op.Tag == AnyTag) {
		return fmt.Errorf("tag %d: %w: it is 0 to %d", op.Tag, ErrTag, math.MaxInt32)
	}
	switch {
	case op.Peer == AnySource:
		if e.noTags && op.Comm == 0 && op.Tag > 0 {
			return fmt.Errorf("tag %d: %w: name the source, or use a communicator without those peers", op.Tag, ErrWildcard)
		}
		return nil
	case op.Peer == e.rank:
		return nil
	}
	return e.peers[op.Peer].check(*op)
}

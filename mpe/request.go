package mpe

import (
	"context"
	"fmt"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Options qualify a send or a receive. The zero value is an INT message with
// tag 0.
type Options struct {
	Datatype protocol.Datatype
	// AnyDatatype lets a receive match INT and FLOAT alike.
	AnyDatatype bool
	// Tag is carried by the v0.9 profile only. Elsewhere messages match in
	// the order in which they were posted, whatever their tags.
	Tag int
	// AnyTag lets a receive match any tag.
	AnyTag bool
}

// Status describes a message that has ended.
type Status struct {
	// Peer is the other rank; Send tells the direction.
	Peer int
	Send bool
	// Bytes is the size of the message as its sender gave it, and Words the
	// same in words, rounded up. What a truncated receive stored is its
	// buffer's length. A Probe of a peer that announces no length says
	// UnknownLength.
	Bytes int64
	Words uint32
	// Comm is the communicator that it belonged to.
	Comm uint32
	// Datatype and Tag are the sender's.
	Datatype protocol.Datatype
	Tag      int
	// Phases are the steps of the handshake, on the engine's clock.
	Phases handshake.Phases
}

// UnknownLength is Status.Bytes of a message that was announced without its
// length.
const UnknownLength = -1

// Request is a posted operation.
type Request struct {
	e    *Engine
	p    *peer
	send bool
	id   handshake.ID
	opts Options
	// buf is the payload of a send or the buffer of a receive. It is the
	// caller's memory until the request ends or is given up.
	buf    []byte
	posted handshake.Instant
	orphan bool // given up by its caller, and still in transfer
	done   chan struct{}
	status Status
	err    error
}

// store writes payload where it belongs.
func (r *Request) store(act handshake.Action) { copy(r.buf[act.Offset:], act.Payload) }

// words is the size of the payload or buffer.
func (r *Request) words() uint32 { return uint32(len(r.buf) / protocol.WordLen) }

// Isend posts a message to rank dst. data is read until the request ends.
func (e *Engine) Isend(dst int, data []byte, opts Options) (*Request, error) {
	return e.post(dst, data, opts, true)
}

// Irecv posts a receive of a message from rank src. buf must not be touched
// until the request ends.
func (e *Engine) Irecv(src int, buf []byte, opts Options) (*Request, error) {
	return e.post(src, buf, opts, false)
}

// Send sends data to rank dst and returns when that rank has acknowledged it.
func (e *Engine) Send(ctx context.Context, dst int, data []byte, opts Options) (Status, error) {
	r, err := e.Isend(dst, data, opts)
	if err != nil {
		return Status{}, err
	}
	return r.Wait(ctx)
}

// Recv receives a message from rank src into buf. If the message is longer than
// buf, the error is a *handshake.TruncatedError and buf holds its beginning.
func (e *Engine) Recv(ctx context.Context, src int, buf []byte, opts Options) (Status, error) {
	r, err := e.Irecv(src, buf, opts)
	if err != nil {
		return Status{}, err
	}
	return r.Wait(ctx)
}

func (e *Engine) post(rank int, buf []byte, opts Options, send bool) (*Request, error) {
	p, err := e.check(rank, buf, opts)
	if err != nil {
		return nil, err
	}
	r := &Request{e: e, p: p, send: send, opts: opts, buf: buf, done: make(chan struct{})}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state != running {
		return nil, fmt.Errorf("rank %d: %w", e.rank, ErrClosed)
	}
	e.nextID++
	r.id, r.posted = e.nextID, e.now()
	if send {
		p.sendq.push(r)
		e.nextSend(p)
	} else if !e.claim(p, r) {
		p.recvq.push(r)
		e.nextRecv(p)
	}
	e.act(p, nil)
	e.settle()
	return r, nil
}

func (e *Engine) check(rank int, buf []byte, opts Options) (*peer, error) {
	switch {
	case rank < 0 || rank >= len(e.peers):
		return nil, fmt.Errorf("rank %d: %w: the cluster has ranks 0 to %d", rank, ErrRank, len(e.peers)-1)
	case rank == e.rank:
		return nil, fmt.Errorf("rank %d: %w: it is the sender itself", rank, ErrRank)
	case len(buf)%protocol.WordLen != 0:
		return nil, fmt.Errorf("%d bytes: %w: messages are counted in 32-bit words", len(buf), ErrLength)
	case opts.Tag < 0 || opts.Tag > 255:
		return nil, fmt.Errorf("tag %d: %w", opts.Tag, ErrTag)
	}
	return e.peers[rank], nil
}

// nextSend hands the next queued send to the pair, if it is free for one.
func (e *Engine) nextSend(p *peer) {
	for p.sending == nil {
		r := p.sendq.pop()
		if r == nil {
			return
		}
		op := handshake.SendOp{ID: r.id, Words: r.words(), Datatype: r.opts.Datatype, Tag: uint8(r.opts.Tag)}
		p.sending = r
		acts, err := p.pair.Send(e.now(), op, e.acts)
		e.acts = acts
		if err != nil {
			p.sending = nil
			e.finish(p, r, err)
		}
	}
}

// nextRecv does the same for receives.
func (e *Engine) nextRecv(p *peer) {
	if p.recving != nil {
		return
	}
	r := p.recvq.pop()
	if r == nil {
		return
	}
	p.recving = r
	acts, err := p.pair.Recv(e.now(), handshake.RecvOp{
		ID: r.id, Words: r.words(), Datatype: r.opts.Datatype, Any: r.opts.AnyDatatype,
		Tag: uint8(r.opts.Tag), AnyTag: r.opts.AnyTag,
	}, e.acts)
	e.acts = acts
	if err != nil { // cannot be: p.recving says that the pair is free
		p.recving = nil
		e.finish(p, r, err)
	}
}

func (e *Engine) sendDone(p *peer, act handshake.Action) {
	r := p.sending
	p.sending = nil
	r.status.Phases = act.Phases
	e.finish(p, r, act.Err)
	e.nextSend(p)
}

func (e *Engine) recvDone(p *peer, act handshake.Action) {
	r := p.recving
	p.recving = nil
	r.status.Words, r.status.Phases = act.Words, act.Phases
	r.status.Datatype, r.status.Tag = act.Header.Call.Datatype(), int(act.Header.Tag)
	if r.orphan {
		if act.Err == nil {
			e.unclaimed(p, r)
		}
	} else {
		e.finish(p, r, act.Err)
	}
	e.nextRecv(p)
}

// finish ends a request and wakes whoever waits for it.
func (e *Engine) finish(p *peer, r *Request, err error) {
	r.status.Peer, r.status.Send = p.rank, r.send
	if r.send {
		r.status.Words, r.status.Datatype, r.status.Tag = r.words(), r.opts.Datatype, r.opts.Tag
	}
	if err != nil && p.sendErr != nil {
		err = &networkError{err, p.sendErr}
	}
	r.err = err
	switch {
	case err != nil:
		p.failures++
	case r.send:
		p.sendsDone++
	default:
		p.recvsDone++
	}
	e.cfg.Observer.Done(e.rank, r.status, err)
	r.buf = nil
	close(r.done)
}

// Done is closed when the request has ended.
func (r *Request) Done() <-chan struct{} { return r.done }

// Wait waits for the request to end, or for ctx. When ctx ends first the
// request is taken back, its buffer is the caller's again, and the error is a
// *WaitError that says what it was waiting for.
func (r *Request) Wait(ctx context.Context) (Status, error) {
	select {
	case <-r.done:
		return r.status, r.err
	default:
	}
	select {
	case <-r.done:
		return r.status, r.err
	case <-ctx.Done():
		return r.e.abandon(r, context.Cause(ctx))
	}
}

// Elapsed is the time from posting a message to its end.
func (s Status) Elapsed() time.Duration {
	end := max(s.Phases.Ack, s.Phases.Data)
	if end < s.Phases.Start {
		return 0
	}
	return end - s.Phases.Start
}

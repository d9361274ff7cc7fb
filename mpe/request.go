package mpe

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/match"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Status describes a message that has ended, or one that a Probe has found.
type Status struct {
	// Peer is the other rank; Send is the direction.
	Peer int
	Send bool
	// Bytes is the size of the message as its sender gave it, and Words the
	// same in words, rounded up. What a truncated receive stored is its
	// buffer's length. A Probe of a peer that announces no length says
	// UnknownLength.
	Bytes int64
	Words uint32
	// Datatype, Tag and Comm are the sender's; a peer that carries no tags
	// has that of the receive.
	Datatype protocol.Datatype
	Tag      int
	Comm     uint32
	// Phases are the steps of the handshake, on the engine's clock.
	Phases handshake.Phases
}

// UnknownLength is Status.Bytes of a message that was announced without its
// length.
const UnknownLength = -1

// Elapsed is the time from posting a message to its end.
func (s Status) Elapsed() time.Duration {
	end := max(s.Phases.Ack, s.Phases.Data)
	if end < s.Phases.Start {
		return 0
	}
	return end - s.Phases.Start
}

// Request is a posted operation. It is an Op.
type Request struct {
	e    *Engine
	kind OpKind
	// peer is the other rank, or AnySource; p what is kept of it, nil for
	// this rank itself and for AnySource.
	peer        int
	p           *peer
	tag         int32
	comm        uint32
	datatype    protocol.Datatype
	anyDatatype bool
	// buf is the payload of a send or the buffer of a receive. It is the
	// caller's memory until the request ends or is detached.
	buf    []byte
	posted handshake.Instant

	// Where it stands: a receive is posted (handle) until a message has
	// matched (in); a send is a handshake's (id) or an extended peer's (out).
	handle match.Handle
	order  uint64 // the receive's place among all that were posted
	in     *inbound
	id     handshake.ID
	out    extended.ID
	// Of a collective call: a request that is a call has it, and those of its
	// messages also the step that they are of, and the flow if they are part of one.
	call *collectiveOp
	step int32
	flow *flow

	detached bool // without its caller, and still in transfer

	ended  atomic.Bool // after status and err were set
	waiter chan<- struct{}
	status Status
	err    error
}

var _ Op = (*Request)(nil)

// words is the size of the payload or buffer.
func (r *Request) words() uint32 { return uint32(len(r.buf) / protocol.WordLen) }

func (r *Request) send() bool { return r.kind == OpSend || r.kind == OpSendSync }

// finish ends a request and wakes its waiter.
func (e *Engine) finish(r *Request, err error) {
	if r.ended.Load() {
		return
	}
	r.status.Send = r.send()
	if r.send() {
		r.status.Peer, r.status.Bytes, r.status.Words = r.peer, int64(len(r.buf)), wordsOf(int64(len(r.buf)))
		r.status.Datatype, r.status.Tag, r.status.Comm = r.datatype, int(r.tag), r.comm
	}
	if p := r.p; p != nil {
		if err != nil && p.sendErr != nil {
			err = &networkError{err, p.sendErr}
		}
		switch {
		case err != nil:
			p.failed++
		case r.send():
			p.sendsDone++
			p.sentBytes += uint64(r.status.Bytes)
		}
	}
	r.err = err
	if e.observed && r.kind != opCollective {
		e.cfg.Observer.Done(e.rank, r.status, err)
	}
	e.placement.revoke(r)
	r.buf, r.in = nil, nil
	if r.call != nil {
		e.ended = append(e.ended, r)
	}
	waiter := r.waiter
	r.watch(nil)
	// A waiter that sees this may free the request.
	r.ended.Store(true)
	if waiter != nil {
		select {
		case waiter <- struct{}{}:
		default:
		}
	}
}

// Wait waits for the request to end, or for ctx. When ctx ends first the
// request is cancelled or detached, its buffer is the caller's again, and the error is a
// *WaitError that says what it was waiting for.
func (r *Request) Wait(ctx context.Context) (Status, error) {
	if r.ended.Load() {
		return r.status, r.err
	}
	r.e.poll(ctx, &r.ended)
	if !r.ended.Load() {
		if err := r.sleep(ctx); err != nil {
			return r.e.detachOrCancel(r, err, nil)
		}
	}
	return r.status, r.err
}

// Detach ends the request as Wait does when its context has ended with cause, but leaves
// its buffer to a transfer that cannot be cancelled and goes on. Release is called when
// the buffer is the caller's again, perhaps before Detach returns. It must not call the
// engine, and not wait. An engine that is closed meanwhile does not call it.
func (r *Request) Detach(cause error, release func()) (Status, error) {
	return r.e.detachOrCancel(r, cause, release)
}

// sleep waits for the request to end without polling.
func (r *Request) sleep(ctx context.Context) error {
	c, ok := r.e.driver.waiters.Get().(chan struct{})
	if !ok {
		c = make(chan struct{}, 1)
	}
	r.Notify(c)
	err := r.e.driver.group.Sleep(ctx, c)
	r.e.mu.Lock()
	r.watch(nil) // nothing is sent to c from here on
	r.e.mu.Unlock()
	select {
	case <-c:
	default:
	}
	r.e.driver.waiters.Put(c)
	return err
}

// Test reports whether the request has ended, and how.
func (r *Request) Test() (Status, bool, error) {
	if !r.ended.Load() {
		if r.e.pollOnce(); !r.ended.Load() {
			return Status{}, false, nil
		}
	}
	return r.status, true, r.err
}

// Notify arranges for a value to be sent to c when the request ends.
func (r *Request) Notify(c chan<- struct{}) {
	if c == nil && r.ended.Load() {
		return
	}
	r.e.mu.Lock()
	defer r.e.mu.Unlock()
	if !r.ended.Load() {
		r.watch(c)
		return
	}
	if c != nil {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// watch changes the channel that is notified of the end.
func (r *Request) watch(c chan<- struct{}) {
	if (c != nil) != (r.waiter != nil) {
		if c != nil {
			r.e.driver.group.Waiting.Add(1)
		} else {
			r.e.driver.group.Waiting.Add(-1)
		}
	}
	r.waiter = c
}

// requests are for reuse.
var requests = sync.Pool{New: func() any { return new(Request) }}

// Free gives the memory of a request that has ended back.
func (r *Request) Free() {
	if !r.ended.Load() {
		return // its buffer is in use: it is the garbage collector's
	}
	*r = Request{}
	requests.Put(r)
}

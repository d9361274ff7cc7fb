package attach

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
)

// answerTime is how long the daemon may take to answer a caller whose context
// has ended: it needs to wait for nothing, and after that it hangs.
const answerTime = 10 * time.Second

// Op is an operation of a Client. When it has been freed it becomes another one.
type Op struct {
	c *Client
	// req is what was posted; call has the rest of a collective call, and is kept for the next one.
	req  wire.Start
	call *collectiveOp
	// block is where in the arena its payload is, if there is one.
	block span
	// got is how much of a receive's payload, or of a call's result, has arrived, or is about to. It belongs to the
	// goroutine that polls for the group.
	got int
	// over has a value when the operation has ended while it was waited for.
	over chan struct{}

	library any // as in Library

	mu sync.Mutex
	opState
}

// opState is how far an operation is. The Op is locked.
type opState struct {
	// begun and sent record for the outbox what it has written of the operation; writing is set while it reads the
	// buffer. queued: it may come back to it.
	begun, writing, queued bool
	sent                   int
	// unread has a value when writing has ended, if a goroutine waits for that.
	unread chan struct{}
	// replied: the outcome is here. ended: and the buffer is the caller's. freed: the operation is for another one,
	// when it is not queued.
	replied, ended, freed bool
	cancelled             bool
	waited                bool // a waiting goroutine is to be notified
	notify                chan<- struct{}
	outcome               wire.Done
}

var _ mpe.Op = (*Op)(nil)

// Start posts a send or a receive. Its errors are those of the daemon's rank, which come with the operation's end,
// mpe.ErrFull beyond the limits, and mpe.ErrClosed.
func (c *Client) Start(req mpe.Operation) (mpe.Op, error) {
	switch {
	case req.Kind < mpe.OpSend || req.Kind > mpe.OpRecv:
		return nil, fmt.Errorf("rank %d: there is no operation of kind %d", c.rank, req.Kind)
	case req.Peer != int(int32(req.Peer)):
		return nil, fmt.Errorf("rank %d: %w: the cluster has ranks 0 to %d", req.Peer, mpe.ErrRank, len(c.peers)-1)
	case req.Tag < mpe.AnyTag || req.Tag > math.MaxInt32:
		return nil, fmt.Errorf("tag %d: %w", req.Tag, mpe.ErrTag)
	}
	op, err := c.enter(wire.Start{Operation: req}, nil)
	if err != nil {
		return nil, err
	}
	if op.req.Placed && req.Kind != mpe.OpRecv {
		c.arena.write(op.block, req.Buf)
	}
	c.out.PutNow(op)
	return op, nil
}

// Probe probes for a message as mpe.Device says.
func (c *Client) Probe(ctx context.Context, m mpe.Match, wait bool) (mpe.Status, bool, error) {
	switch {
	case m.Source != int(int32(m.Source)):
		return mpe.Status{}, false, fmt.Errorf("rank %d: %w", m.Source, mpe.ErrRank)
	case m.Tag != int(int32(m.Tag)):
		return mpe.Status{}, false, fmt.Errorf("tag %d: %w", m.Tag, mpe.ErrTag)
	}
	req := mpe.Operation{Kind: wire.OpProbe, Peer: m.Source, Tag: m.Tag, Comm: m.Comm}
	op, err := c.enter(wire.Start{Operation: req, Wait: wait, Claim: m.Claim}, nil)
	if err != nil {
		return mpe.Status{}, false, err
	}
	c.out.PutNow(op)
	end, err := op.Await(ctx)
	st, found := *end, op.outcome.Found
	op.Free()
	return st, found, err
}

// Free lets the operation's memory become another operation.
func (op *Op) Free() {
	op.mu.Lock()
	idle := op.ended && !op.freed && !op.queued
	op.freed = op.ended
	op.mu.Unlock()
	if idle {
		spareOps.Put(op)
	}
}

// Frame is the outbox's: the operation's next frame, or nothing if it has ended.
func (op *Op) Frame(b []byte) (head, payload []byte, more bool) {
	op.mu.Lock()
	head, payload, more = op.next(b)
	op.queued = more
	idle := op.freed && !more
	op.mu.Unlock()
	if idle {
		spareOps.Put(op)
	}
	return head, payload, more
}

func (op *Op) next(b []byte) (head, payload []byte, more bool) {
	r, begun := &op.req, op.begun
	if op.replied {
		return b, nil, false
	}
	switch op.begun = true; {
	case r.Kind == wire.OpProbe:
		return wire.AppendProbe(b, r), nil, false
	case r.Kind == wire.OpCall:
		op.writing = true
		return op.call.next(b, begun, int(op.c.granted.Chunk))
	case r.Kind != mpe.OpRecv && !r.Placed:
		payload = r.Buf[op.sent:min(len(r.Buf), op.sent+int(op.c.granted.Chunk))]
		op.sent += len(payload)
		op.writing = true
		more = op.sent < len(r.Buf)
	}
	if begun {
		return wire.AppendID(b, wire.FrameData, r.ID, len(payload)), payload, more
	}
	return wire.AppendStart(b, r, len(payload)), payload, more
}

// Written ends an operation whose outcome came while its last payload was being written.
func (op *Op) Written() {
	op.mu.Lock()
	defer op.mu.Unlock()
	op.writing = false
	if op.unread != nil {
		wire.Notify(op.unread)
	}
	op.complete()
}

// reply is the operation's outcome.
func (op *Op) reply(d *wire.Done) {
	op.mu.Lock()
	defer op.mu.Unlock()
	op.replied, op.outcome = true, *d
	op.complete()
}

// complete ends the operation if it has its outcome and its buffer is not in use.
func (op *Op) complete() {
	if op.ended || !op.replied || op.writing {
		return
	}
	op.ended = true
	op.req.Buf = nil
	if op.waited {
		op.over <- struct{}{} // there is room: it is notified once, and waited for
		op.waited = false
	}
	if op.notify != nil {
		wire.Notify(op.notify)
		op.notify = nil
	}
}

// Test reports whether the operation has ended, and how.
func (op *Op) Test() (mpe.Status, bool, error) {
	st, err := op.Ended()
	if st == nil {
		op.c.group.PollOnce()
		if st, err = op.Ended(); st == nil {
			return mpe.Status{}, false, nil
		}
	}
	return *st, true, err
}

// Notify sends a value to n when the operation ends, if n has room.
func (op *Op) Notify(n chan<- struct{}) {
	op.mu.Lock()
	defer op.mu.Unlock()
	op.notify = n
	if op.ended && n != nil {
		op.notify = nil
		wire.Notify(n)
	}
}

// Cancel asks for the operation to be canceled. Collective calls go on: the other ranks would wait for this one.
func (op *Op) Cancel() {
	op.mu.Lock()
	again, id := op.replied || op.cancelled || op.req.Kind == wire.OpCall, op.req.ID
	op.cancelled = true
	op.mu.Unlock()
	if !again {
		op.c.out.PutNow(wire.Raw(wire.AppendID(nil, wire.FrameCancel, id, 0)))
	}
}

// Await waits for the operation to end. When ctx ends first, the operation is
// canceled, and the error is one that errors.As with *mpe.WaitError finds.
func (op *Op) Await(ctx context.Context) (*mpe.Status, error) {
	op.mu.Lock()
	ended := op.ended
	op.waited = !ended
	op.mu.Unlock()
	if !ended {
		if cause := op.c.Await(ctx, op.over); cause != nil {
			op.abort(cause)
		}
	}
	return &op.outcome.Status, op.outcome.Err
}

// Ended is Test that does not poll.
func (op *Op) Ended() (*mpe.Status, error) {
	op.mu.Lock()
	defer op.mu.Unlock()
	if !op.ended {
		return nil, nil
	}
	return &op.outcome.Status, op.outcome.Err
}

// Library returns where a library keeps what belongs to the operation.
func (op *Op) Library() *any { return &op.library }

// abort takes an operation back. The daemon says what it waited for, or how it has ended after all.
func (op *Op) abort(cause error) {
	op.c.out.PutNow(wire.Raw(wire.AbortFrame(op.req.ID, cause)))
	spin, stop := context.WithTimeout(context.Background(), op.c.spin)
	defer stop()
	if op.c.Await(spin, op.over) != nil {
		op.c.mu.Lock()
		op.c.hung = cmp.Or(op.c.hung, fmt.Errorf("it has not answered for %v", op.c.spin))
		op.c.mu.Unlock()
		op.c.stream.HangUp()
		op.c.wait(op.over)
	}
	op.mu.Lock()
	defer op.mu.Unlock()
	op.outcome.Err = op.because(op.outcome.Err, cause)
}

// because makes the error of a caller that waits no longer be the cause in the
// caller's own terms, too: the daemon knows its text only.
func (op *Op) because(err, cause error) error {
	e, ok := errors.AsType[*wire.Error](err)
	if !ok {
		return err
	}
	_, waited := errors.AsType[*mpe.WaitError](err)
	if op.req.Kind == wire.OpCall { // one that waited for no rank has the cause alone
		waited = waited || strings.HasSuffix(e.Text, wire.Clip(cause.Error()))
	}
	if !waited && op.req.Kind != wire.OpProbe {
		return err // it had failed before it was aborted
	}
	return &wire.Error{Text: e.Text, Set: e.Set, Parts: append(slices.Clip(e.Parts), cause)}
}

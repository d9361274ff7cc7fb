package attach

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// answerTime is how long the daemon may take to answer a caller whose context
// has ended: it needs to wait for nothing, and after that it hangs.
const answerTime = 10 * time.Second

// Op is an operation of a Client.
type Op struct {
	c   *Client
	id  uint64
	req mpe.Operation
	// probe is set instead of req.
	probe *probe

	// got is how much of a receive's payload has arrived. It belongs to the
	// reading goroutine.
	got int

	mu sync.Mutex
	// begun and sent tell the outbox what it has written of the operation;
	// writing is set while it reads the buffer.
	begun, writing bool
	sent           int
	// replied: the outcome is here. ended: and the buffer is the caller's.
	replied, ended bool
	cancelled      bool
	status         mpe.Status
	found          bool
	err            error
	waiter         chan struct{}
	notify         chan<- struct{}
}

var _ mpe.Op = (*Op)(nil)

// Start posts a send or a receive. Its errors are those of the daemon's rank,
// which come with the operation's end, mpe.ErrFull beyond the limits, and
// mpe.ErrClosed.
func (c *Client) Start(req mpe.Operation) (mpe.Op, error) {
	switch {
	case req.Kind < mpe.OpSend || req.Kind > mpe.OpRecv:
		return nil, fmt.Errorf("rank %d: there is no operation of kind %d", c.rank, req.Kind)
	case req.Peer != int(int32(req.Peer)):
		return nil, fmt.Errorf("rank %d: %w: the cluster has ranks 0 to %d", req.Peer, mpe.ErrRank, len(c.peers)-1)
	case req.Tag < mpe.AnyTag || req.Tag > math.MaxInt32:
		return nil, fmt.Errorf("tag %d: %w", req.Tag, mpe.ErrTag)
	}
	op := &Op{c: c, req: req}
	if err := c.enter(op); err != nil {
		return nil, err
	}
	c.out.putNow(op)
	return op, nil
}

// Probe looks for a message as mpe.Device says.
func (c *Client) Probe(ctx context.Context, m mpe.Match, wait bool) (mpe.Status, bool, error) {
	op := &Op{c: c, probe: &probe{wait: wait, source: int32(m.Source), tag: int32(m.Tag), comm: m.Comm}}
	switch {
	case m.Source != int(int32(m.Source)):
		return mpe.Status{}, false, fmt.Errorf("rank %d: %w", m.Source, mpe.ErrRank)
	case m.Tag != int(int32(m.Tag)):
		return mpe.Status{}, false, fmt.Errorf("tag %d: %w", m.Tag, mpe.ErrTag)
	}
	if err := c.enter(op); err != nil {
		return mpe.Status{}, false, err
	}
	c.out.putNow(op)
	st, err := op.Wait(ctx)
	return st, op.found, err
}

// frame returns the operation's next frame, or nothing if it has ended.
func (op *Op) frame(b []byte) (head, payload []byte, more bool) {
	op.mu.Lock()
	defer op.mu.Unlock()
	if op.replied {
		return b, nil, false
	}
	if p := op.probe; p != nil {
		p.id = op.id
		return appendProbe(b, p), nil, false
	}
	r := &op.req
	if r.Kind != mpe.OpRecv {
		payload = r.Buf[op.sent:min(len(r.Buf), op.sent+op.c.chunk)]
		op.sent += len(payload)
		op.writing = true
		more = op.sent < len(r.Buf)
	}
	if op.begun {
		return appendData(b, op.id, len(payload)), payload, more
	}
	op.begun = true
	s := start{
		id: op.id, kind: r.Kind, datatype: r.Datatype, anyDatatype: r.AnyDatatype,
		peer: int32(r.Peer), tag: int32(r.Tag), comm: r.Comm, length: uint64(len(r.Buf)),
	}
	return appendStart(b, &s, len(payload)), payload, more
}

// written ends an operation whose outcome came while its last payload was being
// written.
func (op *Op) written() {
	op.mu.Lock()
	defer op.mu.Unlock()
	op.writing = false
	op.settle()
}

// reply is the operation's outcome.
func (op *Op) reply(st mpe.Status, found bool, err error) {
	op.mu.Lock()
	defer op.mu.Unlock()
	op.replied, op.status, op.found, op.err = true, st, found, err
	op.settle()
}

// settle ends the operation, if it has its outcome and its buffer is not in use.
func (op *Op) settle() {
	if op.ended || !op.replied || op.writing {
		return
	}
	op.ended = true
	op.req.Buf = nil
	for _, c := range [...]chan<- struct{}{op.waiter, op.notify} {
		if c == nil {
			continue
		}
		select {
		case c <- struct{}{}:
		default:
		}
	}
	op.waiter, op.notify = nil, nil
}

// Test reports whether the operation has ended, and how.
func (op *Op) Test() (mpe.Status, bool, error) {
	op.mu.Lock()
	defer op.mu.Unlock()
	if !op.ended {
		return mpe.Status{}, false, nil
	}
	return op.status, true, op.err
}

// Notify sends a value to n when the operation ends, if n has room.
func (op *Op) Notify(n chan<- struct{}) {
	op.mu.Lock()
	defer op.mu.Unlock()
	op.notify = n
	if op.ended && n != nil {
		op.notify = nil
		select {
		case n <- struct{}{}:
		default:
		}
	}
}

// Cancel asks for the operation to be taken back.
func (op *Op) Cancel() {
	op.mu.Lock()
	again := op.replied || op.cancelled
	op.cancelled = true
	op.mu.Unlock()
	if !again {
		op.c.out.putNow(raw(cancelFrame(op.id)))
	}
}

// waiters are the channels of goroutines that wait.
var waiters = sync.Pool{New: func() any { return make(chan struct{}, 1) }}

// Wait waits for the operation to end. When ctx ends first, the operation is
// taken back, and the error is one that errors.As with *mpe.WaitError finds.
func (op *Op) Wait(ctx context.Context) (mpe.Status, error) {
	op.mu.Lock()
	if op.ended {
		defer op.mu.Unlock()
		return op.status, op.err
	}
	ended := waiters.Get().(chan struct{})
	op.waiter = ended
	op.mu.Unlock()
	defer waiters.Put(ended)
	select {
	case <-ended:
		return op.status, op.err
	case <-ctx.Done():
		return op.withdraw(ended, context.Cause(ctx))
	}
}

// withdraw takes an operation back. The daemon says what it waited for, or how
// it has ended after all.
func (op *Op) withdraw(ended <-chan struct{}, cause error) (mpe.Status, error) {
	op.c.out.putNow(raw(withdrawFrame(op.id, cause)))
	patience := time.NewTimer(op.c.patience)
	defer patience.Stop()
	select {
	case <-ended:
	case <-patience.C:
		op.c.hangUp(fmt.Errorf("it has not answered for %v", op.c.patience))
		<-ended
	}
	op.mu.Lock()
	defer op.mu.Unlock()
	op.err = op.because(op.err, cause)
	return op.status, op.err
}

// because makes the error of a caller that waits no longer be the cause in the
// caller's own terms, too: the daemon knows its text only.
func (op *Op) because(err, cause error) error {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return err
	}
	if _, waited := errors.AsType[*mpe.WaitError](err); !waited && op.probe == nil {
		return err // it had failed before it was withdrawn
	}
	return &Error{text: e.text, set: e.set, parts: append(slices.Clip(e.parts), cause)}
}

// Free gives the operation's memory back.
func (op *Op) Free() {}

// Await waits for a value on n, or for ctx, whose cause it returns.
func (c *Client) Await(ctx context.Context, n <-chan struct{}) error {
	select {
	case <-n:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

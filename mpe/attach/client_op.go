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

// abortTimeout limits the time that the daemon may take to answer ABORT. A daemon answers at once, without waiting for
// anything, so a daemon that exceeds this time hangs.
const abortTimeout = 10 * time.Second

// Op is an operation of a Client. The client reuses its memory after Free.
type Op struct {
	client *Client
	// req describes the operation as it was posted. call describes a collective call; the next operation reuses its
	// memory.
	req  wire.Start
	call *collectiveOp
	// block is the arena block that contains the payload. It is empty if the payload is not in the arena.
	block span
	// bytesReceived counts the bytes of a received payload, or of a call's result, that have been read or are being
	// read. Only the goroutine that polls for the group may access it.
	bytesReceived int
	// done receives a value when the operation ends, if hasWaiter is set.
	done chan struct{}

	library any // see LibraryData

	mu sync.Mutex
	opState
}

// opState is the part of an operation's state that Op.mu guards.
type opState struct {
	// startSent and bytesSent record how much of the operation the outbox has written. isWriting is set while the
	// outbox reads the buffer; isQueued is set while the outbox may still call Frame.
	startSent, isWriting, isQueued bool
	bytesSent                      int
	// writeDone, if not nil, receives a value when isWriting is cleared.
	writeDone chan struct{}
	// hasOutcome is set once the client has received the outcome, and ended once the caller also owns the buffer again.
	// freed is set by Free; the memory may then be reused as soon as isQueued is cleared.
	hasOutcome, ended, freed bool
	cancelled                bool
	hasWaiter                bool // a goroutine is waiting on done
	notify                   chan<- struct{}
	outcome                  wire.Done
}

var _ mpe.Op = (*Op)(nil)

// Start posts a send or a receive. It returns mpe.ErrFull if a limit is exceeded, and mpe.ErrClosed if the client is
// closed. Any error of the rank in the daemon is reported later, when the operation ends.
func (c *Client) Start(req mpe.Operation) (mpe.Op, error) {
	switch {
	case req.Kind < mpe.OpSend || req.Kind > mpe.OpRecv:
		return nil, fmt.Errorf("rank %d: there is no operation of kind %d", c.rank, req.Kind)
	case req.Peer != int(int32(req.Peer)):
		return nil, fmt.Errorf("rank %d: %w: the cluster has ranks 0 to %d", req.Peer, mpe.ErrRank, len(c.peers)-1)
	case req.Tag < mpe.AnyTag || req.Tag > math.MaxInt32:
		return nil, fmt.Errorf("tag %d: %w", req.Tag, mpe.ErrTag)
	}
	op, err := c.newOp(wire.Start{Operation: req}, nil)
	if err != nil {
		return nil, err
	}
	if op.req.InArena && req.Kind != mpe.OpRecv {
		c.arena.write(op.block, req.Buf)
	}
	c.outbox.Send(op)
	return op, nil
}

// Probe implements mpe.Device.
func (c *Client) Probe(ctx context.Context, match mpe.Match, wait bool) (mpe.Status, bool, error) {
	switch {
	case match.Source != int(int32(match.Source)):
		return mpe.Status{}, false, fmt.Errorf("rank %d: %w", match.Source, mpe.ErrRank)
	case match.Tag != int(int32(match.Tag)):
		return mpe.Status{}, false, fmt.Errorf("tag %d: %w", match.Tag, mpe.ErrTag)
	}
	req := mpe.Operation{Kind: wire.OpProbe, Peer: match.Source, Tag: match.Tag, Comm: match.Comm}
	op, err := c.newOp(wire.Start{Operation: req, Wait: wait, Claim: match.Claim}, nil)
	if err != nil {
		return mpe.Status{}, false, err
	}
	c.outbox.Send(op)
	end, err := op.Await(ctx)
	st, found := *end, op.outcome.Found
	op.Free()
	return st, found, err
}

// Free permits the client to reuse the operation's memory.
func (op *Op) Free() {
	op.mu.Lock()
	idle := op.ended && !op.freed && !op.isQueued
	op.freed = op.ended
	op.mu.Unlock()
	if idle {
		opPool.Put(op)
	}
}

// Frame implements wire.Item. It returns no frame if the daemon has already sent the outcome.
func (op *Op) Frame(b []byte) (head, payload []byte, more bool) {
	op.mu.Lock()
	head, payload, more = op.buildFrame(b)
	op.isQueued = more
	idle := op.freed && !more
	op.mu.Unlock()
	if idle {
		opPool.Put(op)
	}
	return head, payload, more
}

// buildFrame builds the next frame of the operation: first START, CALL or PROBE, and then DATA until all payload is
// sent. The caller holds op.mu.
func (op *Op) buildFrame(b []byte) (head, payload []byte, more bool) {
	start, begun := &op.req, op.startSent
	if op.hasOutcome {
		return b, nil, false
	}
	switch op.startSent = true; {
	case start.Kind == wire.OpProbe:
		return wire.AppendProbe(b, start), nil, false
	case start.Kind == wire.OpCall:
		op.isWriting = true
		return op.call.buildFrame(b, begun, int(op.client.welcome.Chunk))
	case start.Kind != mpe.OpRecv && !start.InArena:
		payload = start.Buf[op.bytesSent:min(len(start.Buf), op.bytesSent+int(op.client.welcome.Chunk))]
		op.bytesSent += len(payload)
		op.isWriting = true
		more = op.bytesSent < len(start.Buf)
	}
	if begun {
		return wire.AppendID(b, wire.FrameData, start.ID, len(payload)), payload, more
	}
	return wire.AppendStart(b, start, len(payload)), payload, more
}

// Written implements wire.Item. It completes an operation whose outcome was received while the operation was being
// written.
func (op *Op) Written() {
	op.mu.Lock()
	defer op.mu.Unlock()
	op.isWriting = false
	if op.writeDone != nil {
		wire.Notify(op.writeDone)
	}
	op.tryComplete()
}

// setOutcome records the outcome of the operation.
func (op *Op) setOutcome(d *wire.Done) {
	op.mu.Lock()
	defer op.mu.Unlock()
	op.hasOutcome, op.outcome = true, *d
	op.tryComplete()
}

// tryComplete ends the operation if its outcome is known and its buffer is no longer in use.
func (op *Op) tryComplete() {
	if op.ended || !op.hasOutcome || op.isWriting {
		return
	}
	op.ended = true
	op.req.Buf = nil
	if op.hasWaiter {
		op.done <- struct{}{} // never blocks: sent only once per wait
		op.hasWaiter = false
	}
	if op.notify != nil {
		wire.Notify(op.notify)
		op.notify = nil
	}
}

// Test reports whether the operation is done, and returns its status and error.
func (op *Op) Test() (mpe.Status, bool, error) {
	st, err := op.Result()
	if st == nil {
		op.client.group.PollOnce()
		if st, err = op.Result(); st == nil {
			return mpe.Status{}, false, nil
		}
	}
	return *st, true, err
}

// Notify registers n to receive a value, without blocking, when the operation ends.
func (op *Op) Notify(n chan<- struct{}) {
	op.mu.Lock()
	defer op.mu.Unlock()
	op.notify = n
	if op.ended && n != nil {
		op.notify = nil
		wire.Notify(n)
	}
}

// Cancel requests the cancellation of the operation. It does nothing for collective calls, because the other
// ranks would wait for this one.
func (op *Op) Cancel() {
	op.mu.Lock()
	again, id := op.hasOutcome || op.cancelled || op.req.Kind == wire.OpCall, op.req.ID
	op.cancelled = true
	op.mu.Unlock()
	if !again {
		op.client.outbox.Send(wire.RawFrame(wire.AppendID(nil, wire.FrameCancel, id, 0)))
	}
}

// Await waits until the operation ends. If ctx ends first, Await cancels the operation and returns an error in
// which errors.As finds a *mpe.WaitError.
func (op *Op) Await(ctx context.Context) (*mpe.Status, error) {
	op.mu.Lock()
	ended := op.ended
	op.hasWaiter = !ended
	op.mu.Unlock()
	if !ended {
		if cause := op.client.awaitOp(ctx, op); cause != nil {
			op.abort(cause)
		}
	}
	return &op.outcome.Status, op.outcome.Err
}

// Result is like Test, but does not poll.
func (op *Op) Result() (*mpe.Status, error) {
	op.mu.Lock()
	defer op.mu.Unlock()
	if !op.ended {
		return nil, nil
	}
	return &op.outcome.Status, op.outcome.Err
}

// LibraryData returns the slot in which a library can store data about the operation.
func (op *Op) LibraryData() *any { return &op.library }

// abort aborts the operation for the given cause. The daemon answers with a description of what the operation is
// waiting for, or with its outcome if the operation ended before the abort.
func (op *Op) abort(cause error) {
	op.client.outbox.Send(wire.RawFrame(wire.AbortFrame(op.req.ID, cause)))
	spin, stop := context.WithTimeout(context.Background(), op.client.abortTimeout)
	defer stop()
	if op.client.Await(spin, op.done) != nil {
		op.client.mu.Lock()
		op.client.closeReason = cmp.Or(op.client.closeReason,
			fmt.Errorf("it has not answered for %v", op.client.abortTimeout))
		op.client.mu.Unlock()
		op.client.stream.HangUp()
		op.client.awaitForever(op.done)
	}
	op.mu.Lock()
	defer op.mu.Unlock()
	op.outcome.Err = op.addCause(op.outcome.Err, cause)
}

// addCause adds cause to the error of an aborted operation so that errors.Is finds it. This is necessary because the
// daemon receives and returns only the text of the cause.
func (op *Op) addCause(err, cause error) error {
	e, ok := errors.AsType[*wire.Error](err)
	if !ok {
		return err
	}
	_, waited := errors.AsType[*mpe.WaitError](err)
	if op.req.Kind == wire.OpCall { // the error of a call that was waiting for no rank contains only the cause
		waited = waited || strings.HasSuffix(e.Text, wire.ClipText(cause.Error()))
	}
	if !waited && op.req.Kind != wire.OpProbe {
		return err // it failed before the abort
	}
	return &wire.Error{Text: e.Text, SentinelSet: e.SentinelSet, Causes: append(slices.Clip(e.Causes), cause)}
}

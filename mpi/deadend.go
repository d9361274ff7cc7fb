package mpi

import (
	"context"
	"errors"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
)

// An FPGA that cannot continue with a message may block other operations: the ones that need its answer, and the ones
// that need the answer of another FPGA waiting for it. A call that waits for several operations therefore stops waiting
// once one of them has failed because its peer cannot continue.

// isPeerStuck reports whether an operation has failed because its peer cannot continue. An error of the message itself,
// such as excessive length, does not affect other operations.
func isPeerStuck(err error) bool {
	return errors.Is(err, handshake.ErrTimeout) || errors.Is(err, handshake.ErrPartial) ||
		errors.Is(err, handshake.ErrDeadEnd)
}

// severity ranks the errors of operations that ended together: 0 for a root cause, 1 for an error that only reports an
// earlier one, 2 for a pending operation.
func severity(err error) int {
	switch {
	case ClassOf(err) == ErrPending:
		return 2
	case errors.Is(err, handshake.ErrDeadEnd):
		return 1
	}
	return 0
}

// errOtherHalf is the cause for cancelling one half of a Sendrecv when the other half has failed.
var errOtherHalf = errors.New("the other half of the call failed")

// causedBySend reports whether the receive of a Sendrecv failed because its send failed.
func causedBySend(recv, send error) bool {
	return errors.Is(recv, errOtherHalf) || errors.Is(recv, handshake.ErrDeadEnd) &&
		!errors.Is(send, handshake.ErrDeadEnd) && isPeerStuck(send)
}

// abandonedCtx is a context cancelled with the cause errOtherHalf.
var abandonedCtx = func() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errOtherHalf)
	return ctx
}()

// awaitBoth waits until both operations are complete, or until one has failed because its peer cannot continue. It
// returns the context for the final wait: ctx or, if the pending operation must be cancelled, abandonedCtx.
func (p *process) awaitBoth(ctx context.Context, op, b mpe.Op) context.Context {
	wake := wakeChans.Get().(chan struct{})
	defer wakeChans.Put(wake)
	op.Notify(wake)
	defer op.Notify(nil)
	b.Notify(wake)
	defer b.Notify(nil)
	for {
		_, doneA, errA := op.Test()
		_, doneB, errB := b.Test()
		switch {
		case doneA && doneB:
			return ctx
		case isPeerStuck(errA) || isPeerStuck(errB):
			return abandonedCtx
		}
		if p.dev.Await(ctx, wake) != nil {
			return ctx
		}
	}
}

// WaitBoth waits for the receive and the send of a nonblocking Sendrecv. If one fails because its peer cannot continue,
// it cancels the other.
func WaitBoth(ctx context.Context, recv, send Request) (Status, error) {
	if send.core == nil {
		return recv.Wait(ctx)
	}
	if !awaitAll(ctx, []Request{recv, send}, false) {
		ctx = abandonedCtx
	}
	st, recvErr := recv.Wait(ctx)
	_, sendErr := send.Wait(ctx)
	if sendErr != nil && (recvErr == nil || causedBySend(recvErr, sendErr)) {
		return st, sendErr
	}
	return st, recvErr
}

// gracePeriod is the time that a call waits for its other operations after one has failed. It is needed because a
// program attached to a daemon may learn a little later of other failures with the same cause.
const gracePeriod = 20 * time.Millisecond

// awaitAll implements Foreign.AwaitAll. failed is set if another request has already failed because its peer cannot
// continue.
func awaitAll(ctx context.Context, requests []Request, failed bool) bool {
	wake := wakeChans.Get().(chan struct{})
	defer wakeChans.Put(wake)
	p, taken := notifyAll(requests, wake)
	if taken != Undefined {
		return true // waiting for that request will report the error
	}
	defer notifyAll(requests, nil)
	var expires context.Context // done when the grace period ends; nil before it begins
	for {
		pending, broken := 0, failed
		for _, r := range requests {
			done, err := r.peekError()
			if !done {
				pending++
			}
			broken = broken || isPeerStuck(err)
		}
		switch {
		case pending == 0 || p == nil:
			return true
		case broken && expires == nil:
			var stop context.CancelFunc
			expires, stop = context.WithTimeout(ctx, gracePeriod)
			defer stop()
		}
		until := ctx
		if expires != nil {
			until = expires
		}
		if p.dev.Await(until, wake) != nil {
			if ctx.Err() == nil {
				return false
			}
			cancelAll(ctx, requests)
			return true
		}
	}
}

// remainingRequests tracks the requests of a Waitall. The call has not yet returned the outcomes of requests[next] and
// those after it.
type remainingRequests struct {
	requests    []Request
	next        int
	peerFailed  bool // an earlier request failed because its peer cannot continue
	leftPending bool // some requests are left pending
}

// isStuck waits for the remaining requests. It reports whether the request r is still pending and may never complete
// because another request has failed.
func (a *remainingRequests) isStuck(ctx context.Context, r Request) bool {
	if done, _ := r.peekError(); done {
		return false
	}
	a.leftPending = a.leftPending || !awaitAll(ctx, a.requests[a.next:], a.peerFailed)
	done, _ := r.peekError() // r itself may be the failed request
	return a.leftPending && !done
}

// pendingError returns the error for a request that is still pending when the call that waits for it returns.
func (r Request) pendingError() error {
	return r.core.call.failf(ErrPending, "another request of the call has failed, and this one may depend on it: "+
		"wait for it again, or cancel it")
}

// peekError reports whether the request is done and returns the error of its operation, without changing the request.
func (r Request) peekError() (done bool, err error) {
	c := r.core
	if c == nil {
		return true, nil
	}
	if q := c.resting; q != nil {
		defer q.rest(r.generation)
		return q.wake(r.generation).peekError()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.generation != r.generation || c.op == nil {
		return true, nil
	}
	_, done, err = c.op.Test()
	return done, err
}

// mayDeadEnd reports whether the peer of a call may become unable to continue, which is called a dead end.
func (k *call) mayDeadEnd() bool {
	c := k.comm
	return c.proc.hasDeployed && (k.peer == AnySource || c.members[k.peer].hasWireLimits)
}

// HasDeployed reports whether the cluster has ranks with the profile of a deployed node.
func (c *Comm) HasDeployed() bool { return c.proc.hasDeployed }

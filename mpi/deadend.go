package mpi

import (
	"context"
	"errors"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
)

// A message that an FPGA does not go on with may be what others wait for: the answer of the FPGA, or that of
// another one behind it. A call that waits for several operations therefore does not wait for the rest once one of them
// has failed so.

// isBroken reports whether an operation has failed because its peer does not go on. An error of the message itself,
// such as one that is too long, says nothing about others.
func isBroken(err error) bool {
	return errors.Is(err, handshake.ErrTimeout) || errors.Is(err, handshake.ErrPartial) ||
		errors.Is(err, handshake.ErrDeadEnd)
}

// severity orders the errors of operations that ended together, the first cause first: what only reports an earlier
// error comes later, and what has not ended last.
func severity(err error) int {
	switch {
	case ClassOf(err) == ErrPending:
		return 2
	case errors.Is(err, handshake.ErrDeadEnd):
		return 1
	}
	return 0
}

// errOtherHalf ends one half of a Sendrecv.
var errOtherHalf = errors.New("the other half of the call has failed")

// followsFrom reports whether the receive of a Sendrecv has failed because of its send.
func followsFrom(recv, send error) bool {
	return errors.Is(recv, errOtherHalf) || errors.Is(recv, handshake.ErrDeadEnd) &&
		!errors.Is(send, handshake.ErrDeadEnd) && isBroken(send)
}

// abandoned has ended because of errOtherHalf.
var abandoned = func() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errOtherHalf)
	return ctx
}()

// awaitBoth waits until both operations are complete, or one has failed because its peer does not go on. It returns the
// context with which to wait for them then.
func (p *process) awaitBoth(ctx context.Context, a, b mpe.Op) context.Context {
	wake := wakers.Get().(chan struct{})
	defer wakers.Put(wake)
	a.Notify(wake)
	defer a.Notify(nil)
	b.Notify(wake)
	defer b.Notify(nil)
	for {
		_, doneA, errA := a.Test()
		_, doneB, errB := b.Test()
		switch {
		case doneA && doneB:
			return ctx
		case isBroken(errA) || isBroken(errB):
			return abandoned
		}
		if p.dev.Await(ctx, wake) != nil {
			return ctx
		}
	}
}

// WaitBoth waits for the receive and the send of a nonblocking Sendrecv. If one has failed because its peer does not go
// on, the other one is not waited for.
func WaitBoth(ctx context.Context, recv, send Request) (Status, error) {
	if send.core == nil {
		return recv.Wait(ctx)
	}
	if !awaitAll(ctx, []Request{recv, send}, false) {
		ctx = abandoned
	}
	st, recvErr := recv.Wait(ctx)
	_, sendErr := send.Wait(ctx)
	if sendErr != nil && (recvErr == nil || followsFrom(recvErr, sendErr)) {
		return st, sendErr
	}
	return st, recvErr
}

// grace is for how long others may end after one that has failed: those that end for the same reason may be known a
// little later to a program that is attached to a daemon.
const grace = 20 * time.Millisecond

// awaitAll is Foreign.AwaitAll, where another request may have failed so before.
func awaitAll(ctx context.Context, requests []Request, failed bool) bool {
	wake := wakers.Get().(chan struct{})
	defer wakers.Put(wake)
	p, taken := notifyAll(requests, wake)
	if taken != Undefined {
		return true // a wait for that one fails
	}
	defer notifyAll(requests, nil)
	var expires context.Context // of the grace, or nil
	for {
		pending, broken := 0, failed
		for _, r := range requests {
			done, err := r.peekError()
			if !done {
				pending++
			}
			broken = broken || isBroken(err)
		}
		switch {
		case pending == 0 || p == nil:
			return true
		case broken && expires == nil:
			var stop context.CancelFunc
			expires, stop = context.WithTimeout(ctx, grace)
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

// restOfAll are the requests of a Waitall, of which those from next on have not been taken.
type restOfAll struct {
	requests []Request
	next     int
	broken   bool // one that was taken had failed because its peer does not go on
	left     bool // those that have not ended are left as they are
}

// depends waits for the rest of the requests, and reports whether r has not ended and
// may never end because of another one.
func (a *restOfAll) depends(ctx context.Context, r Request) bool {
	if done, _ := r.peekError(); done {
		return false
	}
	a.left = a.left || !awaitAll(ctx, a.requests[a.next:], a.broken)
	done, _ := r.peekError() // it may be the one that has failed
	return a.left && !done
}

// pending is the error of a request that has not ended.
func (r Request) pending() error {
	return r.core.call.failf(ErrPending, "another request of the call has failed, and this one may depend on it: "+
		"wait for it again, or cancel it")
}

// peekError reports whether the request has ended, and the error of its operation.
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

// deployed reports whether the peer of a call may get into a dead end.
func (k *call) deployed() bool {
	c := k.comm
	return c.p.deployed && (k.peer == AnySource || c.members[k.peer].limited)
}

// Deployed reports whether the cluster has ranks of the profiles of deployed nodes.
func (c *Comm) Deployed() bool { return c.p.deployed }

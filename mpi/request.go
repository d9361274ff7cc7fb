package mpi

import "context"

// Request is the handle of a send, a receive or a collective call in progress. It is a small value: copies
// denote the same request, and the zero value denotes no request (MPI_REQUEST_NULL). Only one goroutine at a
// time may wait for a request; meanwhile, Wait, Test and Free return ErrRequest in other goroutines. Any
// goroutine may cancel it.
//
// After a wait has returned a request's outcome, later requests reuse its memory. The handle is then stale, and never
// refers to a later request. A persistent request instead becomes inactive until it is started again or freed. Waiting
// for a stale handle, the zero value or an inactive request returns the empty status immediately.
//
// A program need not wait for a request: it may free the request or leave it to the garbage collector. Of a send queued
// behind many other sends, some 60 bytes are not collected. In any case, the buffer is in use until the request is
// done.
type Request struct {
	core       *core
	generation uint64
}

// Wait waits until the request is done. If ctx is done first, the request is cancelled and the caller owns its
// buffer again. The error is then a *mpe.WaitError, which names the ranks that wait for each other.
func (r Request) Wait(ctx context.Context) (st Status, err error) {
	err = r.wait(ctx, &st)
	return st, err
}

// wait implements Wait. It writes the status directly to its destination, because copying a new status takes
// longer.
func (r Request) wait(ctx context.Context, to *Status) error { return r.waitOneOf(ctx, to, nil) }

// waitOneOf is like wait, but r is one of several requests for which the caller waits. rest holds those that have not
// been waited for yet. If one of them fails because its peer cannot continue, while r is pending, waitOneOf leaves r
// pending and returns ErrPending.
func (r Request) waitOneOf(ctx context.Context, to *Status, rest *remainingRequests) error {
	*to = emptyStatus
	c := r.core
	if c == nil {
		return nil
	}
	if q := c.completed; q != nil {
		q.remove(r.generation)
		return nil
	}
	if q := c.resting; q != nil {
		defer q.rest(r.generation)
		return q.wake(r.generation).waitOneOf(ctx, to, rest)
	}
	c.mu.Lock()
	if c.generation != r.generation {
		c.mu.Unlock()
		return nil
	}
	op := c.op
	if op == nil {
		return c.takeOutcome(to)
	}
	if st, err := op.Result(); st != nil {
		return c.finish(to, st, err)
	}
	if rest != nil && c.call.comm.proc.hasDeployed {
		c.mu.Unlock()
		if rest.isStuck(ctx, r) {
			return r.pendingError()
		}
		c.mu.Lock()
		if c.generation != r.generation || c.op != op {
			c.mu.Unlock()
			return nil
		}
	}
	if c.hasWaiter {
		return c.busyError()
	}
	c.hasWaiter = true
	c.mu.Unlock()
	st, err := op.Await(ctx)
	c.mu.Lock()
	c.hasWaiter = false
	return c.finish(to, st, err)
}

// Test reports whether the request is done, without waiting. If it is, Test returns its status. A loop that
// only tests takes processor time away from the progress of messages; use Wait instead.
func (r Request) Test() (Status, bool, error) {
	c := r.core
	if c == nil {
		return emptyStatus, true, nil
	}
	if q := c.completed; q != nil {
		q.remove(r.generation)
		return emptyStatus, true, nil
	}
	if q := c.resting; q != nil {
		defer q.rest(r.generation)
		return q.wake(r.generation).Test()
	}
	c.mu.Lock()
	if c.generation != r.generation {
		c.mu.Unlock()
		return emptyStatus, true, nil
	}
	var status Status
	if c.op == nil {
		err := c.takeOutcome(&status)
		return status, true, err
	}
	if c.hasWaiter {
		return emptyStatus, false, c.busyError()
	}
	st, done, err := c.op.Test()
	if !done {
		c.mu.Unlock()
		return emptyStatus, false, nil
	}
	err = c.finish(&status, &st, err)
	return status, true, err
}

// Active reports whether the request has been started and its outcome has not yet been returned by a wait.
func (r Request) Active() bool { return r.state() != inactive }

// Peek is like Test, but does not complete the request (MPI_Request_get_status).
func (r Request) Peek() (Status, bool, error) {
	c := r.core
	if c == nil || c.completed != nil {
		return emptyStatus, true, nil
	}
	if q := c.resting; q != nil {
		defer q.rest(r.generation)
		return q.wake(r.generation).Peek()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.generation != r.generation || c.op == nil && !c.done:
		return emptyStatus, true, nil
	case c.op == nil:
		return c.call.noMessageStatus(), true, nil
	}
	st, done, err := c.op.Test()
	if !done {
		return emptyStatus, false, nil
	}
	var s Status
	err = c.call.finish(&s, &st, err)
	return s, true, err
}

// Cancel asks the device to cancel the operation of the request. The caller must still wait for the request; the status
// reports whether it was cancelled. A receive that has already matched a message completes as usual, and so does a send
// whose payload has been sent.
//
// A collective call cannot be cancelled, because the other ranks would wait for it. It is abandoned if the
// context passed to Wait is done.
func (r Request) Cancel() error {
	if q := r.restingSends(); q != nil {
		defer q.rest(r.generation)
		return q.wake(r.generation).Cancel()
	}
	c, err := r.lock("Cancel")
	if err != nil {
		return err
	}
	defer c.mu.Unlock()
	switch {
	case c.completed != nil: // too late
	case c.collective != nil:
		return c.call.failf(ErrRequest, "a collective call cannot be cancelled, as the other ranks would wait for "+
			"it: wait for it with a context that ends")
	case c.op != nil:
		c.op.Cancel()
	case !c.done:
		return c.call.failf(ErrRequest, "cannot be cancelled: it is not active")
	}
	return nil
}

// Free releases the request, whose handle becomes stale. An operation in progress continues, and its outcome is
// discarded. A collective call in progress cannot be freed.
func (r Request) Free() error {
	if q := r.restingSends(); q != nil {
		return q.free(r.generation)
	}
	c, err := r.lock("Free")
	if err != nil {
		return err
	}
	if c.completed != nil {
		c.completed.remove(r.generation)
		c.mu.Unlock()
		return nil
	}
	if c.collective != nil {
		defer c.mu.Unlock()
		return c.call.failf(ErrRequest, "a collective call cannot be freed while it is in progress: wait for it")
	}
	if c.hasWaiter {
		return c.busyError()
	}
	p, op := c.call.comm.proc, c.op
	c.op, c.persistence = nil, once
	if op != nil {
		c.call.packedBuf = nil // still in use until the operation is done
	}
	c.release()
	if op != nil {
		p.freedOps.add(op)
	}
	return nil
}

// lock locks the core of a request. It returns an error if the request does not exist.
func (r Request) lock(call string) (*core, error) {
	c := r.core
	if c == nil {
		return nil, errorf(ErrRequest, call, "there is no request: the handle is the zero value")
	}
	c.mu.Lock()
	if c.generation != r.generation && !(c.completed != nil && c.completed.contains(r.generation)) {
		c.mu.Unlock()
		return nil, errorf(ErrRequest, call, staleRequestText)
	}
	return c, nil
}

const staleRequestText = "the request no longer exists: it has been waited for, or freed"

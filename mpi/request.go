package mpi

import "context"

// Request is the handle of a send, a receive or a collective call that was started.
// It is a small value: copies of it are the same request, and the zero value is none
// (MPI_REQUEST_NULL). One goroutine at a time may wait for a request: while it does, Wait, Test and Free of
// others return ErrRequest. They may cancel it.
//
// A request that has ended and been waited for is over, and its memory is used for later
// ones; its handle is stale then, and never refers to one of those. Persistent requests are inactive instead, until they are started
// again or freed. To wait for a stale handle, for the zero value or for an
// inactive request gives the empty status at once.
//
// A request need not be waited for: it may be freed, or left to the garbage collector. Of a send behind many others,
// some 60 bytes are not collected. Its buffer is in use until the request is done in any case.
type Request struct {
	core       *core
	generation uint64
}

// Wait waits for the request to end. When ctx ends first, the request is cancelled, its
// buffer is the caller's again, and the error says who waits for whom, in a
// *mpe.WaitError.
func (r Request) Wait(ctx context.Context) (st Status, err error) {
	err = r.wait(ctx, &st)
	return st, err
}

// wait is Wait, which puts the status where it belongs: to copy one that has just been written takes longer than to write it.
func (r Request) wait(ctx context.Context, to *Status) error { return r.waitAmong(ctx, to, nil) }

// waitAmong is wait for one of several requests that are waited for, of which rest are those that have not been taken.
// If one of these fails because its peer does not go on, the request is left as it is: its error is ErrPending.
func (r Request) waitAmong(ctx context.Context, to *Status, rest *restOfAll) error {
	*to = emptyStatus
	c := r.core
	if c == nil {
		return nil
	}
	if q := c.completed; q != nil {
		q.take(r.generation)
		return nil
	}
	if q := c.resting; q != nil {
		defer q.rest(r.generation)
		return q.wake(r.generation).waitAmong(ctx, to, rest)
	}
	c.mu.Lock()
	if c.generation != r.generation {
		c.mu.Unlock()
		return nil
	}
	op := c.op
	if op == nil {
		return c.take(to)
	}
	if st, err := op.Ended(); st != nil {
		return c.end(to, st, err)
	}
	if rest != nil && c.call.comm.p.deployed {
		c.mu.Unlock()
		if rest.depends(ctx, r) {
			return r.pending()
		}
		c.mu.Lock()
		if c.generation != r.generation || c.op != op {
			c.mu.Unlock()
			return nil
		}
	}
	if c.waited {
		return c.taken()
	}
	c.waited = true
	c.mu.Unlock()
	st, err := op.Await(ctx)
	c.mu.Lock()
	c.waited = false
	return c.end(to, st, err)
}

// Test reports whether the request has ended, and how, without waiting. A loop
// that does nothing but test takes a processor away from the progress of messages: wait
// instead.
func (r Request) Test() (Status, bool, error) {
	c := r.core
	if c == nil {
		return emptyStatus, true, nil
	}
	if q := c.completed; q != nil {
		q.take(r.generation)
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
	var s Status
	if c.op == nil {
		err := c.take(&s)
		return s, true, err
	}
	if c.waited {
		return emptyStatus, false, c.taken()
	}
	st, done, err := c.op.Test()
	if !done {
		c.mu.Unlock()
		return emptyStatus, false, nil
	}
	err = c.end(&s, &st, err)
	return s, true, err
}

// Active reports whether the request has been started and not been waited for since.
func (r Request) Active() bool { return r.state() != inactive }

// Peek is Test, but leaves the request as it is (MPI_Request_get_status).
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
		return c.call.null(), true, nil
	}
	st, done, err := c.op.Test()
	if !done {
		return emptyStatus, false, nil
	}
	var s Status
	err = c.call.end(&s, &st, err)
	return s, true, err
}

// Cancel requests that the request be cancelled. It must be waited for all the same, and
// its status says whether it was cancelled: a receive that a message has matched, and a
// send whose payload has been sent, end as if Cancel had not been called.
//
// A collective call cannot be cancelled, as the other ranks would wait for it. It is
// abandoned when the context of a wait for it ends.
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
	case c.completed != nil: // it is too late
	case c.collective != nil:
		return c.call.failf(ErrRequest, "a collective call cannot be cancelled, as the other ranks would wait for it: wait for it with a context that ends")
	case c.op != nil:
		c.op.Cancel()
	case !c.done:
		return c.call.failf(ErrRequest, "cannot be cancelled: it is not active")
	}
	return nil
}

// Free ends the use of the request: its handle is stale from then on. A request that is
// in progress continues, and its outcome is discarded. A collective call in progress cannot be freed.
func (r Request) Free() error {
	if q := r.restingSends(); q != nil {
		return q.free(r.generation)
	}
	c, err := r.lock("Free")
	if err != nil {
		return err
	}
	if c.completed != nil {
		c.completed.take(r.generation)
		c.mu.Unlock()
		return nil
	}
	if c.collective != nil {
		defer c.mu.Unlock()
		return c.call.failf(ErrRequest, "a collective call cannot be freed while it is under way: wait for it")
	}
	if c.waited {
		return c.taken()
	}
	p, op := c.call.comm.p, c.op
	c.op, c.again = nil, once
	if op != nil {
		c.call.scattered = nil // it is in use
	}
	c.over()
	if op != nil {
		p.freed.add(op)
	}
	return nil
}

// lock locks a request that there is.
func (r Request) lock(call string) (*core, error) {
	c := r.core
	if c == nil {
		return nil, errorf(ErrRequest, call, "there is no request: the handle is the zero value")
	}
	c.mu.Lock()
	if c.generation != r.generation && !(c.completed != nil && c.completed.has(r.generation)) {
		c.mu.Unlock()
		return nil, errorf(ErrRequest, call, noRequest)
	}
	return c, nil
}

const noRequest = "there is no request any longer: it has been waited for, or freed"

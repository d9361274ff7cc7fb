package mpi

import (
	"context"
)

// Request is the handle of a send, a receive or a collective call that was started.
// It is a small value: copies of it are the same request, and the zero value is none
// (MPI_REQUEST_NULL). One goroutine at a time may wait for a request or test it,
// while others may cancel it.
//
// A request that has ended and been waited for is over, and what there was of it
// serves later ones; its handle is stale then, and never takes one of those for
// its own. Persistent requests are inactive instead, until they are started
// again or freed. To wait for a stale handle, for the zero value or for an
// inactive request gives the empty status at once.
//
// A request that nobody waits for may be freed, or be left to the garbage
// collector. Its buffer is in use until it has ended in any case.
type Request struct {
	core *core
	life uint64
}

// Wait waits for the request to end. When ctx ends first, the request is taken
// back, its buffer is the caller's again, and the error tells who waits for
// whom, in a *mpe.WaitError.
func (r Request) Wait(ctx context.Context) (Status, error) {
	c := r.core
	if c == nil {
		return emptyStatus, nil
	}
	c.mu.Lock()
	if c.life != r.life {
		c.mu.Unlock()
		return emptyStatus, nil
	}
	op := c.op
	if op == nil {
		return c.take()
	}
	c.mu.Unlock()
	st, err := op.Wait(ctx)
	c.mu.Lock()
	if c.op == nil || c.life != r.life { // it was freed meanwhile
		c.mu.Unlock()
		return emptyStatus, nil
	}
	return c.end(&st, err)
}

// Test reports whether the request has ended, and how, without waiting. A loop
// that does nothing but test takes a processor away from what carries the
// messages: wait instead.
func (r Request) Test() (Status, bool, error) {
	c := r.core
	if c == nil {
		return emptyStatus, true, nil
	}
	c.mu.Lock()
	if c.life != r.life {
		c.mu.Unlock()
		return emptyStatus, true, nil
	}
	if c.op == nil {
		st, err := c.take()
		return st, true, err
	}
	st, done, err := c.op.Test()
	if !done {
		c.mu.Unlock()
		return emptyStatus, false, nil
	}
	s, err := c.end(&st, err)
	return s, true, err
}

// Cancel asks for the request to be taken back. It must be waited for all the
// same, and its status tells whether that worked: a receive that a message has
// matched, and a send that has left, end as if nothing had been asked.
//
// A collective call cannot be cancelled, as the other ranks would wait for it. It is given
// up by waiting for it with a context that ends.
func (r Request) Cancel() error {
	c, err := r.lock("Cancel")
	if err != nil {
		return err
	}
	defer c.mu.Unlock()
	switch {
	case c.collective != nil:
		return c.call.failf(ErrRequest, "a collective call cannot be cancelled, as the other ranks would wait for it: wait for it with a context that ends")
	case c.op != nil:
		c.op.Cancel()
	case !c.done:
		return c.call.failf(ErrRequest, "cannot be cancelled: it is not active")
	}
	return nil
}

// Free gives the request up: its handle is stale from then on. One that is under
// way ends as it would have, and frees itself then; what became of it is told to
// nobody. Nobody may be waiting for the request. A collective call that is under way
// cannot be freed.
func (r Request) Free() error {
	c, err := r.lock("Free")
	if err != nil {
		return err
	}
	if c.collective != nil {
		defer c.mu.Unlock()
		return c.call.failf(ErrRequest, "a collective call cannot be freed while it is under way: wait for it")
	}
	p, op := c.call.comm.p, c.op
	c.op, c.again = nil, once
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
	if c.life != r.life {
		c.mu.Unlock()
		return nil, errorf(ErrRequest, call, "there is no request any longer: it has been waited for, or freed")
	}
	return c, nil
}

package mpi

import (
	"context"
	"sync"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// Request is a send or a receive that was started. One goroutine at a time may
// wait for it or test it, while others may cancel it. A request that has ended
// and been waited for is inactive: waiting for it again gives the empty status
// at once, as waiting for a nil request does.
//
// A request that nobody waits for needs no freeing, but its buffer is in use
// until it has ended.
type Request struct {
	call   call
	repeat *repeat // of a persistent request

	mu     sync.Mutex
	state  state
	op     mpe.Op
	status Status
	err    error
}

// state is where a request stands.
type state uint8

const (
	inactive state = iota
	active         // op is the device's
	ended          // status and err are what the next Wait or Test gives
)

// Wait waits for the request to end. When ctx ends first, the request is taken
// back, its buffer is the caller's again, and the error tells who waits for
// whom, in a *mpe.WaitError.
func (r *Request) Wait(ctx context.Context) (Status, error) {
	r.await(ctx)
	return r.consume()
}

// Test reports whether the request has ended, and how, without waiting. A loop
// that does nothing but test takes a processor away from what carries the
// messages: wait instead.
func (r *Request) Test() (Status, bool, error) {
	if r.poll() == active {
		return emptyStatus, false, nil
	}
	st, err := r.consume()
	return st, true, err
}

// Cancel asks for the request to be taken back. It must be waited for all the
// same, and its status tells whether that worked: a receive that a message has
// matched, and a send that has left, end as if nothing had been asked.
func (r *Request) Cancel() error {
	if r == nil {
		return errorf(ErrRequest, "Cancel", "the request is nil")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch r.state {
	case inactive:
		return r.call.failf(ErrRequest, "cannot be cancelled: it is not active")
	case active:
		r.op.Cancel()
	}
	return nil
}

// pending gives the device's operation if the request is active.
func (r *Request) pending() mpe.Op {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state != active {
		return nil
	}
	return r.op
}

// await waits for an active request to end.
func (r *Request) await(ctx context.Context) {
	if op := r.pending(); op != nil {
		r.end(op.Wait(ctx))
	}
}

// poll looks whether an active request has ended, and gives its state.
func (r *Request) poll() state {
	if op := r.pending(); op != nil {
		st, done, err := op.Test()
		if !done {
			return active
		}
		r.end(st, err)
		return ended
	}
	if r == nil {
		return inactive
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state
}

func (r *Request) end(st mpe.Status, err error) {
	s, e := r.call.end(st, err)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status, r.err = s, e
	r.state, r.op = ended, nil
}

// consume gives the outcome of a request that has ended, once.
func (r *Request) consume() (Status, error) {
	if r == nil {
		return emptyStatus, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state != ended {
		return emptyStatus, nil
	}
	r.state = inactive
	return r.status, r.err
}

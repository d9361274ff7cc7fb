package mpi

import (
	"context"
	"sync"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// core is the state of a request. Cores are reused for later requests.
type core struct {
	mu sync.Mutex
	// generation counts the requests that have used this core. A handle with a different generation is stale.
	generation uint64
	call       call
	// op is the device operation of an active request. It keeps the outcome until it is freed. It is freed with
	// the lock held, so that a cancel never reaches an operation that has been freed.
	op mpe.Op
	// collective is set for requests of collective calls.
	collective *collectiveCall
	// done is set if the request is complete without an operation, for example because its peer is ProcNull,
	// until it is waited for.
	done  bool
	again persistence
	// waited is set while a goroutine waits for the request. That goroutine frees the request.
	waited bool
	// held is set if the core belongs to the device's operation. The core is then freed together with the
	// operation.
	held bool
	// completed, if not nil, owns this core. The core then serves the handles of all requests in completed, and
	// uses no other field.
	completed *completed
	// resting, if not nil, owns this core in the same way.
	resting *resting
}

// request returns a new request for op, or for a call that needs no operation.
func (k *call) request(op mpe.Op, done bool) Request {
	c := k.core(op)
	// A stale handle reads only the generation.
	c.call, c.op, c.done, c.again = *k, op, done, once
	return Request{c, c.generation}
}

// core returns a core for a new request.
func (k *call) core(op mpe.Op) *core {
	if op != nil {
		if held := op.Library(); held != nil {
			if *held == nil {
				*held = &core{held: true}
			}
			return (*held).(*core)
		}
	}
	c, _ := k.comm.p.cores.Get().(*core)
	if c == nil {
		c = new(core)
	}
	return c
}

// end returns the outcome of the operation, and unlocks the core.
func (c *core) end(to *Status, st *mpe.Status, err error) error {
	err = c.call.end(to, st, err)
	if err == nil && c.collective != nil {
		c.collective.place()
	}
	op := c.op
	c.op = nil
	c.over()
	op.Free()
	return err
}

// take returns the outcome of a request without an operation, and unlocks the core.
func (c *core) take(to *Status) error {
	*to = emptyStatus
	if !c.done {
		c.mu.Unlock()
		return nil
	}
	*to = c.call.null()
	c.over()
	return nil
}

// taken returns the error for a call on a request that another goroutine waits for, and unlocks the core.
func (c *core) taken() error {
	defer c.mu.Unlock()
	return c.call.failf(ErrRequest, "another goroutine waits for the request: one at a time may")
}

// over makes a request inactive, or its handles stale, and unlocks the core. The caller then frees the device's
// operation.
func (c *core) over() {
	c.done = false
	if c.again != once {
		c.mu.Unlock()
		return
	}
	c.generation++
	c.call.giveBack()
	c.call.bytes = nil
	p, x, held := c.call.comm.p, c.collective, c.held
	c.collective = nil
	c.mu.Unlock()
	if x != nil {
		x.over()
	}
	if !held {
		p.cores.Put(c)
	}
}

// state is the state of a request.
type state uint8

const (
	inactive state = iota
	active
	ended // the next Wait or Test returns the outcome
)

// state returns the state of the request without changing it.
func (r Request) state() state {
	c := r.core
	if c == nil {
		return inactive
	}
	if q := c.completed; q != nil {
		if q.has(r.generation) {
			return ended
		}
		return inactive
	}
	if q := c.resting; q != nil {
		return q.state(r.generation)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.generation != r.generation:
		return inactive
	case c.op == nil && c.done:
		return ended
	case c.op == nil:
		return inactive
	}
	if _, done, _ := c.op.Test(); done {
		return ended
	}
	return active
}

// abort cancels an active request because ctx is done. Wait and Test will still return the outcome.
func (r Request) abort(ctx context.Context) {
	c := r.core
	if c == nil || c.completed != nil {
		return
	}
	if q := c.resting; q != nil {
		defer q.rest(r.generation)
		q.wake(r.generation).abort(ctx)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.generation == r.generation && c.op != nil {
		_, _ = c.op.Await(ctx) // Test will return the same outcome
	}
}

// notify registers n, which will receive a value when the request ends. If n is nil, notify unregisters it.
// notify returns the process of an active request, or nil if the request is done. taken reports whether another
// goroutine waits for the request.
func (r Request) notify(n chan<- struct{}) (p *process, taken bool) {
	c := r.core
	if c == nil || c.completed != nil {
		return nil, false
	}
	if q := c.resting; q != nil {
		return q.notify(r.generation, n)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.generation != r.generation || c.op == nil {
		return nil, false
	}
	if c.waited && n != nil {
		return nil, true
	}
	c.waited = n != nil
	c.op.Notify(n)
	return c.call.comm.p, false
}

// released holds the operations of requests that were freed before they were done.
type released struct {
	mu   sync.Mutex
	ops  []mpe.Op
	next int
}

// add adds an operation. It also checks two other operations and frees them if they are done, so that the list
// does not grow much beyond the number of operations in progress.
func (f *released) add(op mpe.Op) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ops = append(f.ops, op)
	f.freeNext()
	f.freeNext()
}

// sweep frees all operations that are done.
func (f *released) sweep() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for range len(f.ops) {
		f.freeNext()
	}
}

// freeNext frees the next operation in turn if it is done.
func (f *released) freeNext() {
	if f.next >= len(f.ops) {
		f.next = 0
	}
	if f.next == len(f.ops) { // the list is empty
		return
	}
	op := f.ops[f.next]
	if _, done, _ := op.Test(); !done {
		f.next++
		return
	}
	op.Free()
	last := len(f.ops) - 1
	f.ops[f.next], f.ops[last] = f.ops[last], nil
	f.ops = f.ops[:last]
}

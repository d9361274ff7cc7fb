package mpi

import (
	"context"
	"sync"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// core is the state of a request. It is used for one request after another.
type core struct {
	mu sync.Mutex
	// generation counts the requests that it has been used for: a handle of another
	// generation is stale.
	generation uint64
	call       call
	// op is the device's, of an active request; it is freed under the lock, so
	// that no cancel comes too late. It keeps the outcome until then.
	op mpe.Op
	// collective is the call of a collective's request.
	collective *collectiveCall
	// done: a request without an operation, such as one with ProcNull, has
	// ended and not been waited for.
	done  bool
	again persistence
	// waited: a goroutine waits for the request, and frees it afterwards.
	waited bool
	// held: it stays with the device's operation, and is freed with that.
	held bool
	// completed, if not nil, are the requests whose handles this is the core of: it has nothing else.
	completed *completed
	// resting, if not nil, are those of the sends that rest, likewise.
	resting *resting
}

// request is a new request: op, or one that has ended without an operation.
func (k *call) request(op mpe.Op, done bool) Request {
	c := k.core(op)
	// Stale handles read its generation only.
	c.call, c.op, c.done, c.again = *k, op, done, once
	return Request{c, c.generation}
}

// core returns a core for a request.
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

// end gives the outcome of the operation, and unlocks.
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

// take gives the outcome of a request without an operation, and unlocks.
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

// taken returns the error of a call for a request that another goroutine waits for, and unlocks.
func (c *core) taken() error {
	defer c.mu.Unlock()
	return c.call.failf(ErrRequest, "another goroutine waits for the request: one at a time may")
}

// over makes a request inactive, or its handles stale, and unlocks. A device's operation is freed afterwards.
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

// state is that of a request.
type state uint8

const (
	inactive state = iota
	active
	ended // the next Wait or Test gives the outcome
)

// state returns the state of the request, and does not change it.
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

// abort cancels an active request because ctx is done. Wait and Test still return its outcome.
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
		_, _ = c.op.Await(ctx) // Test gives the same then
	}
}

// notify has a value sent to n when the request ends; at once, if it has. It returns the
// process of an active request, or nil.
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

// released are operations of requests that were freed before they ended.
type released struct {
	mu   sync.Mutex
	ops  []mpe.Op
	next int
}

// add adds one, and frees two if they have ended, so that there are not many more than
// are under way.
func (f *released) add(op mpe.Op) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ops = append(f.ops, op)
	f.freeNext()
	f.freeNext()
}

// sweep frees those that have ended.
func (f *released) sweep() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for range len(f.ops) {
		f.freeNext()
	}
}

// freeNext frees the next one if it has ended.
func (f *released) freeNext() {
	if f.next >= len(f.ops) {
		f.next = 0
	}
	if f.next == len(f.ops) { // there are none
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

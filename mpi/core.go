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
	// op is the device operation of an active request. It keeps the outcome until it is freed. Before that, op is set
	// to nil with the lock held, so that Cancel never reaches a freed operation.
	op mpe.Op
	// collective describes the collective call if the request belongs to one.
	collective *collectiveCall
	// done is set while a request that completed without an operation, for example because its peer is ProcNull, has
	// not been waited for.
	done        bool
	persistence persistence
	// hasWaiter is set while a goroutine waits for the request. That goroutine frees the request.
	hasWaiter bool
	// deviceOwned is set if the device's operation owns the core, which is then reused together with the operation.
	deviceOwned bool
	// completed is not nil in a core that all requests listed in it share. The core then uses no other field.
	completed *completed
	// resting is not nil in a core that all requests listed in it share, in the same way.
	resting *restingRequests
}

// newRequest returns a new request for op, or for a call that needs no operation.
func (k *call) newRequest(op mpe.Op, done bool) Request {
	c := k.newCore(op)
	// A stale handle reads only the generation.
	c.call, c.op, c.done, c.persistence = *k, op, done, once
	return Request{c, c.generation}
}

// newCore returns a core for a new request.
func (k *call) newCore(op mpe.Op) *core {
	if op != nil {
		if held := op.LibraryData(); held != nil {
			if *held == nil {
				*held = &core{deviceOwned: true}
			}
			return (*held).(*core)
		}
	}
	c, _ := k.comm.proc.cores.Get().(*core)
	if c == nil {
		c = new(core)
	}
	return c
}

// finish returns the outcome of the operation, frees the operation and unlocks the core.
func (c *core) finish(to *Status, st *mpe.Status, err error) error {
	err = c.call.finish(to, st, err)
	if err == nil && c.collective != nil {
		c.collective.unpackReceived()
	}
	op := c.op
	c.op = nil
	c.release()
	op.Free()
	return err
}

// takeOutcome returns the outcome of a request that has no operation, and unlocks the core.
func (c *core) takeOutcome(to *Status) error {
	*to = emptyStatus
	if !c.done {
		c.mu.Unlock()
		return nil
	}
	*to = c.call.noMessageStatus()
	c.release()
	return nil
}

// busyError returns the error for a call on a request that another goroutine waits for. It unlocks the core.
func (c *core) busyError() error {
	defer c.mu.Unlock()
	return c.call.failf(ErrRequest, "another goroutine is already waiting for the request")
}

// release makes a persistent request inactive, or the handles of any other request stale. It unlocks the core. The
// caller must then free the device's operation.
func (c *core) release() {
	c.done = false
	if c.persistence != once {
		c.mu.Unlock()
		return
	}
	c.generation++
	c.call.releaseCopy()
	c.call.bytes = nil
	p, x, held := c.call.comm.proc, c.collective, c.deviceOwned
	c.collective = nil
	c.mu.Unlock()
	if x != nil {
		x.recycle()
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
		if q.contains(r.generation) {
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

// abort cancels an active request because ctx is done. Wait and Test still return the outcome.
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

// notify registers the channel n to receive a value when the request completes, or unregisters the current channel if n
// is nil. It returns the process of an active request, or nil if the request is done. taken reports whether another
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
	if c.hasWaiter && n != nil {
		return nil, true
	}
	c.hasWaiter = n != nil
	c.op.Notify(n)
	return c.call.comm.proc, false
}

// freedOps holds the operations whose requests were freed before the operations were done.
type freedOps struct {
	mu   sync.Mutex
	ops  []mpe.Op
	next int
}

// add adds an operation. It also frees up to two completed operations, so that the list does not grow much beyond the
// number of operations in progress.
func (f *freedOps) add(op mpe.Op) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ops = append(f.ops, op)
	f.freeNext()
	f.freeNext()
}

// freeDone frees all operations that are done.
func (f *freedOps) freeDone() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for range len(f.ops) {
		f.freeNext()
	}
}

// freeNext frees the next operation in turn if it is done.
func (f *freedOps) freeNext() {
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

package mpe

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpe/core"
)

// Request is a posted operation. It is an Op.
type Request struct {
	core core.Request // as the core has it, whose owner this is

	e      *Engine     // whose the request is; nil if nobody can wait for it
	ended  atomic.Bool // after all else of the request was set
	waiter chan<- struct{}
	then   func() // is called when the request ends, or nil

	// spare is where its memory goes, or nil, and below the next one there; library is as in Library.
	spare   *spareRequests
	below   *Request
	library any
}

var _ Op = (*Request)(nil)

// requestOf is the driver's request of one of the core's.
func requestOf(r *core.Request) *Request { return r.Owner.(*Request) }

// complete ends the request for its caller, and notifies that. A waiter that sees it may free the request.
func (r *Request) complete() {
	if r.waiter == nil && r.then == nil && r.core.Call == nil {
		r.ended.Store(true)
		return
	}
	waiter, then := r.waiter, r.then
	if waiter != nil {
		r.watch(nil)
	}
	if x := r.core.Call; x != nil {
		r.core.Call = nil
		executions.Put(x)
	}
	r.ended.Store(true)
	if waiter != nil {
		notify(waiter)
	}
	if then != nil {
		then()
	}
}

// watch changes the channel that is notified of the end.
func (r *Request) watch(w chan<- struct{}) {
	if (w != nil) != (r.waiter != nil) {
		if w != nil {
			r.e.group.Waiting.Add(1)
		} else {
			r.e.group.Waiting.Add(-1)
		}
	}
	r.waiter, r.core.Awaited = w, w != nil
}

// notify sends a value to c, which may be nil, if there is room.
func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Wait waits for the request to end, or for ctx. When ctx ends first the
// request is cancelled or detached, its buffer is the caller's again, and the error is a
// *WaitError that says what it was waiting for.
func (r *Request) Wait(ctx context.Context) (Status, error) {
	s, err := r.Await(ctx)
	return *s, err
}

// Await is Wait for callers that need no copy of the status. It is valid until the request is freed.
func (r *Request) Await(ctx context.Context) (*Status, error) {
	if !r.ended.Load() {
		r.e.sendCoalesced()
		polled := r.e.group.Poll(ctx, &r.ended, nil) // for as long as that is better than to be woken
		if !r.ended.Load() {
			if err := r.sleep(ctx, polled); err != nil {
				_, err := r.detach(err, nil, false)
				return &r.core.Status, r.e.failure.of(err)
			}
		}
	}
	return &r.core.Status, r.e.failure.of(r.core.Err)
}

// failure has Config.Failed, or nil.
type failure struct{ f func() }

// of calls it before a caller gets an error, which it returns.
func (f failure) of(err error) error {
	if err != nil && f.f != nil {
		f.f()
	}
	return err
}

// Detach ends the request as Wait does when its context has ended with cause, but a transfer
// that cannot be cancelled goes on with what keep returns. Keep is not called otherwise, nor
// after Detach has returned: then the buffer is the caller's, unless keep has returned it.
func (r *Request) Detach(cause error, keep Keep) (Status, error) {
	return r.detach(cause, keep, false)
}

// Abandon is Detach for a caller that is gone: a message that a receive has matched is dropped
// with it, as no other program is to receive it. A nil keep has the engine copy what it
// needs, as Wait does.
func (r *Request) Abandon(cause error, keep Keep) (Status, error) {
	return r.detach(cause, keep, true)
}

// sleep waits for the request to end without polling, as progress.Group.Sleep does.
func (r *Request) sleep(ctx context.Context, polled time.Duration) error {
	c, ok := r.e.waiters.Get().(chan struct{})
	if !ok {
		c = make(chan struct{}, 1)
	}
	r.Notify(c)
	err := r.e.group.Sleep(ctx, c, polled)
	r.e.mu.Lock()
	r.watch(nil) // nothing is sent to c from here on
	r.e.mu.Unlock()
	select {
	case <-c:
	default:
	}
	r.e.waiters.Put(c)
	return err
}

// Ended is Test without polling. The status is nil if the request has not ended, and valid until it is freed.
func (r *Request) Ended() (*Status, error) {
	if !r.ended.Load() {
		return nil, nil
	}
	return &r.core.Status, r.e.failure.of(r.core.Err)
}

// Test reports whether the request has ended, and how.
func (r *Request) Test() (Status, bool, error) {
	if !r.ended.Load() {
		if r.e.PollOnce(); !r.ended.Load() {
			return Status{}, false, nil
		}
	}
	return r.core.Status, true, r.e.failure.of(r.core.Err)
}

// Notify arranges for a value to be sent to c when the request ends.
func (r *Request) Notify(c chan<- struct{}) {
	if c == nil && r.ended.Load() {
		return
	}
	r.e.mu.Lock()
	defer r.e.mu.Unlock()
	if !r.ended.Load() {
		r.watch(c)
		return
	}
	notify(c)
}

// OnEnd has then called when the request ends, at once if it has, for a caller that polls. It
// is called with the engine's lock held, and must not call the engine, and not wait.
func (r *Request) OnEnd(then func()) {
	r.e.mu.Lock()
	ended := r.ended.Load()
	if !ended {
		r.then = then
	}
	r.e.mu.Unlock()
	if ended {
		then()
	}
}

// requests are for reuse: those that belong to no spareRequests.
var requests = sync.Pool{New: func() any { return makeRequest() }}

func makeRequest() *Request {
	r := new(Request)
	r.core.Owner = r
	return r
}

// maxSpareRequests is how many requests an engine has for reuse at most, about 0.5 MiB. Further ones are the garbage collector's.
const maxSpareRequests = 1024

// spareRequests are the requests that an engine has for reuse. To take one, the engine's lock has to be held.
type spareRequests struct {
	next     *Request
	made     int
	returned atomic.Pointer[Request] // by any goroutine
}

// get returns a request without content.
func (s *spareRequests) get() *Request {
	r := s.next
	if r == nil {
		r = s.returned.Swap(nil)
	}
	if r == nil {
		if s.made == maxSpareRequests {
			return requests.Get().(*Request)
		}
		s.made++
		r = makeRequest()
		r.spare = s
		return r
	}
	s.next, r.below = r.below, nil
	return r
}

// put returns a request.
func (s *spareRequests) put(r *Request) {
	for {
		r.below = s.returned.Load()
		if s.returned.CompareAndSwap(r.below, r) {
			return
		}
	}
}

// Free gives the memory of a request that has ended back.
func (r *Request) Free() {
	if !r.ended.Load() {
		return // its buffer is in use: it is the garbage collector's
	}
	r.release()
}

// release gives the memory of a request back that nothing refers to.
func (r *Request) release() {
	s := r.spare
	*r = Request{spare: s, library: r.library}
	r.core.Owner = r
	if s == nil {
		requests.Put(r)
	} else {
		s.put(r)
	}
}

// Library returns where a library keeps what belongs to the operation.
func (r *Request) Library() *any { return &r.library }

// Cancel cancels the request, if that is still possible.
func (r *Request) Cancel() {
	r.e.lock()
	defer r.e.unlock()
	r.e.core.Cancelled(&r.core)
}

// detach ends a request for its caller, whose context has ended. The caller gets
// its buffer back at once. What cannot be cancelled on the wire goes on with a copy: a message
// whose DATA is out still needs its payload for retransmissions, and a sender that has been
// cleared will send, so its message is kept for the next receive, unless the caller is gone.
//
// With keep, what goes on has what that returns, instead of a copy. It is called with the lock
// held, and so is its release.
func (r *Request) detach(cause error, keep Keep, gone bool) (Status, error) {
	e := r.e
	e.lock()
	defer e.unlock()
	for r.core.Call != nil && !r.core.Over && r.core.Call.CancelComputing(cause) {
		awaitUser(e) // the user's function has the buffers
	}
	e.core.EndWait(&r.core, cause, keep, gone)
	return r.core.Status, r.core.Err
}

// compute calls a user's function. It may take long: a goroutine calls it, without the
// lock.
func compute(e *Engine, j collective.Job) {
	e.goroutines.Go(func() {
		err := j.Run()
		e.lock()
		defer e.unlock()
		if e.userEnded != nil {
			close(e.userEnded)
			e.userEnded = nil
		}
		e.core.Computed(j, err)
	})
}

// awaitUser waits, without the lock, for a user's function to come to its end.
func awaitUser(e *Engine) {
	if e.userEnded == nil {
		e.userEnded = make(chan struct{})
	}
	c := e.userEnded
	e.mu.Unlock()
	<-c
	e.lock()
}

package mpe

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe/collective"
)

// completion is the end of a request as its caller sees it.
type completion struct {
	e      *Engine     // whose the request is; nil if nobody can wait for it
	ended  atomic.Bool // after all else of the request was set
	waiter chan<- struct{}
	then   func() // is called when the request ends, or nil
}

// over reports whether the request has ended.
func (c *completion) over() bool { return c.ended.Load() }

// complete ends the request, and notifies its waiter.
func (c *completion) complete() {
	waiter, then := c.waiter, c.then
	if waiter != nil {
		c.watch(nil)
	}
	c.ended.Store(true)
	if waiter != nil {
		notify(waiter)
	}
	if then != nil {
		then()
	}
}

// watch changes the channel that is notified of the end.
func (c *completion) watch(w chan<- struct{}) {
	if (w != nil) != (c.waiter != nil) {
		if w != nil {
			c.e.group.Waiting.Add(1)
		} else {
			c.e.group.Waiting.Add(-1)
		}
	}
	c.waiter = w
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
	if !r.over() {
		polled := r.e.poll(ctx, &r.ended)
		if !r.over() {
			if err := r.sleep(ctx, polled); err != nil {
				_, err := r.e.detachOrCancel(r, err, nil, false)
				return &r.status, r.e.failed(err)
			}
		}
	}
	return &r.status, r.e.failed(r.err)
}

// failed calls Config.Failed before a caller gets an error, which it returns.
func (e *Engine) failed(err error) error {
	if err != nil && e.cfg.Failed != nil {
		e.cfg.Failed()
	}
	return err
}

// Keep returns memory for a transfer that goes on without its caller, with the bytes of buf:
// buf itself, or a copy. Release is called when the engine needs the memory no longer. Neither may
// call the engine, or wait. An engine that is closed meanwhile does not call release.
type Keep func(buf []byte) (kept []byte, release func())

// Detach ends the request as Wait does when its context has ended with cause, but a transfer
// that cannot be cancelled goes on with what keep returns. Keep is not called otherwise, nor
// after Detach has returned: then the buffer is the caller's, unless keep has returned it.
func (r *Request) Detach(cause error, keep Keep) (Status, error) {
	return r.e.detachOrCancel(r, cause, keep, false)
}

// Abandon is Detach for a caller that is gone: a message that a receive has matched is dropped
// with it, as no other program is to receive it. A nil keep has the engine copy what it
// needs, as Wait does.
func (r *Request) Abandon(cause error, keep Keep) (Status, error) {
	return r.e.detachOrCancel(r, cause, keep, true)
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
	if !r.over() {
		return nil, nil
	}
	return &r.status, r.e.failed(r.err)
}

// Test reports whether the request has ended, and how.
func (r *Request) Test() (Status, bool, error) {
	if !r.over() {
		if r.e.PollOnce(); !r.over() {
			return Status{}, false, nil
		}
	}
	return r.status, true, r.e.failed(r.err)
}

// Notify arranges for a value to be sent to c when the request ends.
func (r *Request) Notify(c chan<- struct{}) {
	if c == nil && r.over() {
		return
	}
	r.e.mu.Lock()
	defer r.e.mu.Unlock()
	if !r.over() {
		r.watch(c)
		return
	}
	notify(c)
}

// OnEnd has then called when the request ends, at once if it has, for a caller that polls. It
// is called with the engine's lock held, and must not call the engine, and not wait.
func (r *Request) OnEnd(then func()) {
	r.e.mu.Lock()
	over := r.over()
	if !over {
		r.then = then
	}
	r.e.mu.Unlock()
	if over {
		then()
	}
}

// requests are for reuse: those that belong to no spareRequests.
var requests = sync.Pool{New: func() any { return new(Request) }}

// newRequest returns a request without content.
func newRequest() *Request { return requests.Get().(*Request) }

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
			return newRequest()
		}
		s.made++
		return &Request{spare: s}
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
	if !r.over() {
		return // its buffer is in use: it is the garbage collector's
	}
	r.release()
}

// release gives the memory of a request back that nothing refers to.
func (r *Request) release() {
	s := r.spare
	*r = Request{spare: s, library: r.library}
	if s == nil {
		requests.Put(r)
	} else {
		s.put(r)
	}
}

// Library returns what a library keeps of the operation. It is the library's alone, and stays when the operation is freed, for
// the next one that has its memory.
func (r *Request) Library() *any { return &r.library }

// Cancel cancels the request, if that is still possible.
func (r *Request) Cancel() {
	r.e.lock()
	defer r.e.unlock()
	r.e.cancelled(r)
}

// detachOrCancel ends a request for its caller, whose context has ended. The caller gets
// its buffer back at once. What cannot be cancelled on the wire goes on with a copy: a message
// whose DATA is out still needs its payload for retransmissions, and a sender that has been
// cleared will send, so its message is kept for the next receive, unless the caller is gone.
//
// With keep, what goes on has what that returns, instead of a copy. It is called with the lock
// held, and so is its release.
func (e *Engine) detachOrCancel(r *Request, cause error, keep Keep, gone bool) (Status, error) {
	e.lock()
	defer e.unlock()
	for r.kind == opCollective && !r.over() && r.call.CancelComputing(cause) {
		e.awaitUser() // the user's function has the buffers
	}
	e.endWait(r, cause, keep, gone)
	return r.status, r.err
}

// compute implements driver. The function may take long: a goroutine calls it, without the
// lock.
func (e *Engine) compute(j collective.Job) {
	e.goroutines.Go(func() {
		err := j.Run()
		e.lock()
		defer e.unlock()
		if e.userEnded != nil {
			close(e.userEnded)
			e.userEnded = nil
		}
		e.computed(j, err)
	})
}

// awaitUser waits, without the lock, for a user's function to come to its end.
func (e *Engine) awaitUser() {
	if e.userEnded == nil {
		e.userEnded = make(chan struct{})
	}
	c := e.userEnded
	e.mu.Unlock()
	<-c
	e.lock()
}

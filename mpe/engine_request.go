package mpe

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpe/core"
)

// Request is a posted operation. It implements Op.
type Request struct {
	core core.Request // the core's part; its Owner is this request

	engine *Engine     // nil if no caller can wait for the request
	ended  atomic.Bool // set after all other fields
	waiter chan<- struct{}
	onEnd  func() // called when the request completes; may be nil

	// pool is the pool to which the request's memory belongs; nil if none. nextSpare is the next request in the pool.
	// library is the storage for LibraryData.
	pool      *spareRequests
	nextSpare *Request
	library   any
}

var _ Op = (*Request)(nil)

// requestOf returns the Request that belongs to a request of the core.
func requestOf(r *core.Request) *Request { return r.Owner.(*Request) }

// complete marks the request as complete and wakes its caller, which may free the request from then on.
func (r *Request) complete() {
	if r.waiter == nil && r.onEnd == nil && r.core.Call == nil {
		r.ended.Store(true)
		return
	}
	waiter, then := r.waiter, r.onEnd
	if waiter != nil {
		r.setWaiter(nil)
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

// setWaiter sets the channel to notify when the request completes. A nil channel disables the notification.
func (r *Request) setWaiter(w chan<- struct{}) {
	if (w != nil) != (r.waiter != nil) {
		if w != nil {
			r.engine.group.Waiting.Add(1)
		} else {
			r.engine.group.Waiting.Add(-1)
		}
	}
	r.waiter, r.core.Awaited = w, w != nil
}

// notify sends a value to the channel c without blocking. The channel may be nil.
func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Wait waits until the request completes. If ctx is done first, Wait cancels or detaches the request, returns its
// buffer to the caller, and returns a *WaitError, which describes the wait.
func (r *Request) Wait(ctx context.Context) (Status, error) {
	s, err := r.Await(ctx)
	return *s, err
}

// Await is like Wait, but does not copy the status. The status is valid until the request is freed.
func (r *Request) Await(ctx context.Context) (*Status, error) {
	if !r.ended.Load() {
		r.engine.sendCoalesced()
		polled := r.engine.group.Poll(ctx, &r.ended, nil) // for as long as polling is better than being woken
		if !r.ended.Load() {
			if err := r.sleep(ctx, polled); err != nil {
				_, err := r.detach(err, nil, false)
				return &r.core.Status, r.engine.failure.report(err)
			}
		}
	}
	return &r.core.Status, r.engine.failure.report(r.core.Err)
}

// failure holds Config.OnFailure, or nil.
type failure struct{ callback func() }

// report calls Config.OnFailure unless err is nil, and returns err. It must be called before the caller of the
// operation gets err.
func (f failure) report(err error) error {
	if err != nil && f.callback != nil {
		f.callback()
	}
	return err
}

// Detach ends the request in the same way as Wait does when its context is done with the given cause. A transfer that
// cannot be cancelled continues in the memory that keep returns; Detach calls keep only in this case. When Detach
// returns, the buffer belongs to the caller, unless keep returned it.
func (r *Request) Detach(cause error, keep KeepFunc) (Status, error) {
	return r.detach(cause, keep, false)
}

// Abandon is like Detach, for a caller that no longer exists. If the request is a receive that has matched a message,
// Abandon drops the message, because no other program may receive it. If keep is nil, the engine copies the buffer when
// a transfer has to continue, as Wait does.
func (r *Request) Abandon(cause error, keep KeepFunc) (Status, error) {
	return r.detach(cause, keep, true)
}

// sleep waits until the request completes, without polling; see progress.Group.Sleep.
func (r *Request) sleep(ctx context.Context, polled time.Duration) error {
	c, ok := r.engine.waiters.Get().(chan struct{})
	if !ok {
		c = make(chan struct{}, 1)
	}
	r.Notify(c)
	err := r.engine.group.Sleep(ctx, c, polled)
	r.engine.mu.Lock()
	r.setWaiter(nil) // nothing is sent to c afterwards
	r.engine.mu.Unlock()
	select {
	case <-c:
	default:
	}
	r.engine.waiters.Put(c)
	return err
}

// Result is like Test, but does not poll. The status is nil if the request is incomplete; otherwise it is valid until
// the request is freed.
func (r *Request) Result() (*Status, error) {
	if !r.ended.Load() {
		return nil, nil
	}
	return &r.core.Status, r.engine.failure.report(r.core.Err)
}

// Test polls once if necessary, reports whether the request is complete, and returns its status and error.
func (r *Request) Test() (Status, bool, error) {
	if !r.ended.Load() {
		if r.engine.PollOnce(); !r.ended.Load() {
			return Status{}, false, nil
		}
	}
	return r.core.Status, true, r.engine.failure.report(r.core.Err)
}

// Notify makes the engine send a value to c when the request completes.
func (r *Request) Notify(c chan<- struct{}) {
	if c == nil && r.ended.Load() {
		return
	}
	r.engine.mu.Lock()
	defer r.engine.mu.Unlock()
	if !r.ended.Load() {
		r.setWaiter(c)
		return
	}
	notify(c)
}

// OnEnd makes the engine call then when the request completes, or calls it at once if the request is already complete.
// It serves callers that poll, possibly on behalf of another process. awaited, if not nil, reports whether that process
// sleeps until the request completes; the engine calls it for Snapshot while the request is pending. The engine holds
// its lock during both calls, so the functions must not call the engine, and must not block.
func (r *Request) OnEnd(then func(), awaited func() bool) {
	r.engine.mu.Lock()
	ended := r.ended.Load()
	if !ended {
		r.onEnd, r.core.AwaitedElsewhere = then, awaited
	}
	r.engine.mu.Unlock()
	if ended {
		then()
	}
}

// requests recycles requests whose pool is nil.
var requests = sync.Pool{New: func() any { return makeRequest() }}

func makeRequest() *Request {
	r := new(Request)
	r.core.Owner = r
	return r
}

// maxSpareRequests is the maximum number of requests in an engine's pool, which then occupies about 0.5 MiB. Further
// requests come from the shared sync.Pool.
const maxSpareRequests = 1024

// spareRequests is an engine's pool of requests. Callers of get must hold the engine's lock; any goroutine may call
// put.
type spareRequests struct {
	free      *Request
	allocated int
	freed     atomic.Pointer[Request] // by any goroutine
}

// get returns an empty request.
func (s *spareRequests) get() *Request {
	request := s.free
	if request == nil {
		request = s.freed.Swap(nil)
	}
	if request == nil {
		if s.allocated == maxSpareRequests {
			return requests.Get().(*Request)
		}
		s.allocated++
		request = makeRequest()
		request.pool = s
		return request
	}
	s.free, request.nextSpare = request.nextSpare, nil
	return request
}

// put returns a request to the pool.
func (s *spareRequests) put(r *Request) {
	for {
		r.nextSpare = s.freed.Load()
		if s.freed.CompareAndSwap(r.nextSpare, r) {
			return
		}
	}
}

// Free releases the memory of a completed request.
func (r *Request) Free() {
	if !r.ended.Load() {
		return // the engine still uses its buffer; the garbage collector frees it later
	}
	r.release()
}

// release recycles a request's memory once nothing refers to the request any longer.
func (r *Request) release() {
	s := r.pool
	*r = Request{pool: s, library: r.library}
	r.core.Owner = r
	if s == nil {
		requests.Put(r)
	} else {
		s.put(r)
	}
}

// LibraryData returns the storage for a library's data about the operation.
func (r *Request) LibraryData() *any { return &r.library }

// Cancel cancels the request unless it is too late to do so.
func (r *Request) Cancel() {
	r.engine.lock()
	defer r.engine.unlock()
	r.engine.core.CancelRequest(&r.core)
}

// detach ends a request because its caller's context is done, and returns the buffer to the caller at once. A transfer
// that cannot be cancelled on the wire continues with a copy: a message whose DATA was sent needs its payload for
// retransmissions, and a sender that was cleared will send its message, which is kept for the next receive unless gone
// is set.
//
// If keep is not nil, the transfer continues in the memory that keep returns instead of a copy. The engine holds its
// lock while it calls keep and the release function.
func (r *Request) detach(cause error, keep KeepFunc, gone bool) (Status, error) {
	engine := r.engine
	engine.lock()
	defer engine.unlock()
	for r.core.Call != nil && !r.core.Done && r.core.Call.CancelComputing(cause) {
		awaitUser(engine) // the user's function is using the buffers
	}
	engine.core.AbortWait(&r.core, cause, keep, gone)
	return r.core.Status, r.core.Err
}

// compute calls a user's function in a goroutine, without the lock, because it may take a long time.
func compute(engine *Engine, job collective.Job) {
	engine.goroutines.Go(func() {
		err := job.Run()
		engine.lock()
		defer engine.unlock()
		if engine.userReturned != nil {
			close(engine.userReturned)
			engine.userReturned = nil
		}
		engine.core.JobDone(job, err)
	})
}

// awaitUser waits, without the lock, until a user's function returns.
func awaitUser(engine *Engine) {
	if engine.userReturned == nil {
		engine.userReturned = make(chan struct{})
	}
	c := engine.userReturned
	engine.mu.Unlock()
	<-c
	engine.lock()
}

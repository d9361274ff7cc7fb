package capi

import (
	"context"
	"math"
	"time"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// request is a request to which the program holds a handle.
type request struct {
	mpi.Request
	comm *comm
	// ownDetails holds the fields that only some requests need. It is nil in an ordinary request, because a program may
	// have millions of those.
	ownDetails *requestDetails
}

// requestDetails holds the fields that only a few requests need.
type requestDetails struct {
	// persistent is set if the handle remains valid until the program frees the request.
	persistent bool
	// send is the send of an MPI_Isendrecv, whose status describes the receive. sendCopy keeps the copied payload of
	// the send alive.
	send     mpi.Request
	sendCopy []byte
	// restart restarts a persistent request of a collective call or a partitioned message.
	restart func() (mpi.Request, error)
	// generalized is set for MPI_Grequest_start.
	generalized *generalized
	// partitioned is set for MPI_Psend_init and MPI_Precv_init.
	partitioned *mpi.Partitioned
}

var (
	noDetails         requestDetails
	persistentDetails = requestDetails{persistent: true}
)

// details returns the fields that only a few requests need. The caller must not modify them.
func (r *request) details() *requestDetails {
	if r.ownDetails == nil {
		return &noDetails
	}
	return r.ownDetails
}

// active reports whether there is anything to wait for. For a persistent request that is not started, there is not.
func (r *request) active() bool {
	return r.details().generalized != nil || r.Active() || r.details().send.Active()
}

// done reports whether the request and its send, if any, are done. It does not change the request.
func (r *request) done() bool {
	if r.details().generalized != nil {
		return r.details().generalized.isComplete()
	}
	_, a, _ := r.Peek()
	_, b, _ := r.details().send.Peek()
	return a && b
}

// finish waits for the request and its send, if any. According to the standard, the status of a send has no source and
// no tag. For a send, finish returns unsetSource, so that setStatus preserves the values that the program stored there.
// MPICH preserves these values too, and some programs read them.
func (r *request) finish() (mpi.Status, error) {
	if r.details().generalized != nil {
		return r.details().generalized.finish()
	}
	inactive := r.details().persistent && !r.Active()
	st, err := mpi.WaitBoth(context.Background(), r.Request, r.details().send)
	if st.Source == mpi.AnySource && !inactive {
		st.Source = unsetSource
	}
	return st, err
}

// unsetSource is a source that makes setStatus write only whether the request was cancelled.
const unsetSource = math.MinInt

// awaitAny waits until at least one of the requests is probably done. The caller must check which.
func awaitAny(list []*request) {
	var few [16]mpi.Request
	parts, general := few[:0], false
	for _, req := range list {
		switch {
		case req == nil || !req.active():
		case req.details().generalized != nil:
			general = true
		default:
			for _, part := range [...]mpi.Request{req.Request, req.details().send} {
				if _, done, _ := part.Peek(); !done {
					parts = append(parts, part)
				}
			}
		}
	}
	if general { // completing it does not wake a caller that waits for several requests
		time.Sleep(generalPollTime)
		return
	}
	mpi.Foreign.AwaitAny(context.Background(), parts)
}

// awaitAll waits until all requests are done, or until one has failed because its peer cannot continue. It reports
// whether the caller should wait for requests still pending.
func awaitAll(list []*request) bool {
	var few [16]mpi.Request
	parts := few[:0]
	for _, req := range list {
		switch {
		case req == nil || !req.active():
		case req.details().generalized != nil:
			return true
		default:
			parts = append(parts, req.Request, req.details().send)
		}
	}
	return mpi.Foreign.AwaitAll(context.Background(), parts)
}

// generalPollTime is the interval at which a wait for several requests polls generalized requests.
const generalPollTime = 20 * time.Microsecond

var _ = add(map[string]implementation{
	"Wait":               func(a *args) { check(a.wait()) },
	"Test":               (*args).test,
	"Waitall":            func(a *args) { a.waitAll(2, true) },
	"Testall":            func(a *args) { a.waitAll(3, false) },
	"Waitany":            func(a *args) { a.waitAny(true) },
	"Testany":            func(a *args) { a.waitAny(false) },
	"Waitsome":           func(a *args) { a.waitSome(true) },
	"Testsome":           func(a *args) { a.waitSome(false) },
	"Request_free":       (*args).requestFree,
	"Request_get_status": (*args).requestStatus,
	"Cancel":             (*args).cancel,
	"Start":              func(a *args) { a.startRequest(a.checkedPointer(0), 0) },
	"Startall":           (*args).startall,
})

// newRequest stores a handle for a started request at the address in argument i, which must be valid.
func (a *args) newRequest(i int, r mpi.Request, again bool) {
	check(a.lib.newRequest(a.checkedPointer(i), r, again, a.comm))
}

// newRequest stores a handle for a started request at p.
func (l *Library) newRequest(p unsafe.Pointer, req mpi.Request, again bool, c *comm) error {
	made, handle, err := l.requests.alloc()
	if err != nil {
		cancelAll(req)
		return err
	}
	if made.Request, made.comm = req, c; again {
		made.ownDetails = &persistentDetails
	}
	l.setHandleAt(p, 0, handle)
	return nil
}

// cancelAll cancels requests for which the program cannot get a handle.
func cancelAll(list ...mpi.Request) {
	ended, end := context.WithCancel(context.Background())
	end()
	for _, r := range list {
		_, _ = r.Wait(ended) // the error of the call is reported
		_ = r.Free()         // needed if it is persistent
	}
}

// request returns the request of a handle, or nil for MPI_REQUEST_NULL.
func (l *Library) request(h uint64) (*request, error) {
	if h == l.abi.null[kindRequest] {
		return nil, nil
	}
	r := l.requests.get(h)
	if r == nil {
		return nil, errorf(mpi.ErrRequest, "%#x is not a request, or has been waited for", h)
	}
	return r, nil
}

// requestIn returns the request whose handle argument 0 points to, together with that pointer.
func (a *args) requestIn() (r *request, p unsafe.Pointer, err error) {
	if p = a.pointer(0); p == nil {
		return nil, nil, a.nullPointer(0)
	}
	r, err = a.lib.request(a.lib.handleAt(p, 0))
	return r, p, err
}

// validRequest returns the request whose handle is element n in an array. It fails the call if the handle is invalid or
// MPI_REQUEST_NULL.
func (a *args) validRequest(p unsafe.Pointer, n int) *request {
	r := must(a.lib.request(a.lib.handleAt(p, n)))
	if r == nil {
		panic(failf(mpi.ErrRequest, "the request is MPI_REQUEST_NULL"))
	}
	a.comm = r.comm
	return r
}

// dropCompleted removes the handle of a completed request, which is element n of an array, unless the request is
// persistent.
func (a *args) dropCompleted(p unsafe.Pointer, n int, r *request) {
	if !r.details().persistent {
		a.dropRequest(p, n)
	}
}

func (a *args) dropRequest(p unsafe.Pointer, n int) {
	a.lib.requests.remove(a.lib.handleAt(p, n))
	a.lib.setHandleAt(p, n, a.lib.abi.null[kindRequest])
}

var emptyStatus = mpi.Status{Source: mpi.AnySource, Tag: mpi.AnyTag}

// wait implements MPI_Wait. It returns its error instead of panicking, because programs call it frequently.
func (a *args) wait() error {
	req, p, err := a.requestIn()
	if err != nil {
		return err
	}
	st := emptyStatus
	if req != nil {
		a.comm = req.comm
		st, err = req.finish()
		a.dropCompleted(p, 0, req)
	}
	a.status(1, &st)
	return err
}

// test implements MPI_Test(request, flag, status). A null request is complete, with an empty status.
func (a *args) test() {
	req, p, err := a.requestIn()
	check(err)
	a.checkedPointer(1)
	st, done := emptyStatus, true
	if req != nil {
		a.comm = req.comm
		if done = req.done(); done {
			st, err = req.finish()
			a.dropCompleted(p, 0, req)
		}
	}
	a.setFlag(1, done)
	if done {
		a.status(2, &st)
	}
	check(err)
}

// free detaches the request from the program. An operation in progress continues.
func (r *request) free() error {
	switch {
	case r.details().partitioned != nil:
		return r.details().partitioned.Free()
	case r.details().restart != nil && !r.Active():
		return nil
	case r.details().send != mpi.Request{}:
		if err := r.details().send.Free(); err != nil {
			return err
		}
	}
	return r.Free()
}

// requestFree implements MPI_Request_free(request). The operation continues, as does a generalized request.
func (a *args) requestFree() {
	p := a.checkedPointer(0)
	req := a.validRequest(p, 0)
	if req.details().generalized != nil {
		h := a.lib.handleAt(p, 0)
		a.lib.setHandleAt(p, 0, a.lib.abi.null[kindRequest])
		check(req.details().generalized.release(h))
		return
	}
	check(req.free())
	a.dropRequest(p, 0)
}

// requestStatus implements MPI_Request_get_status(request, flag, status), which leaves the request unchanged.
func (a *args) requestStatus() {
	req := must(a.lib.request(a.handle(0, kindRequest)))
	if req == nil {
		st := emptyStatus
		a.status(2, &st)
		a.setFlag(1, true)
		return
	}
	a.comm = req.comm
	if req.details().generalized != nil {
		a.generalStatus(req)
		return
	}
	st, _, err := req.Peek()
	done := req.done()
	if !done {
		err = nil
	}
	a.setFlag(1, done)
	if done {
		a.status(2, &st)
	}
	check(err)
}

// cancel implements MPI_Cancel(request).
func (a *args) cancel() {
	p := a.checkedPointer(0)
	r := a.validRequest(p, 0)
	if g := r.details().generalized; g != nil {
		check(g.requestCancel())
		return
	}
	check(r.Cancel())
}

// startRequest starts persistent request i of an array. A collective or partitioned one is started by posting it anew.
func (a *args) startRequest(p unsafe.Pointer, i int) {
	req := a.validRequest(p, i)
	if req.details().restart == nil {
		check(req.Start())
		return
	}
	if req.Active() {
		panic(failf(mpi.ErrRequest, "the request is active: wait for it before starting it again"))
	}
	var err error
	req.Request, err = req.details().restart()
	check(err)
}

func (a *args) startall() {
	n := a.int(0)
	if n <= 0 {
		return
	}
	p := a.checkedPointer(1)
	for i := range n {
		a.startRequest(p, i)
	}
}

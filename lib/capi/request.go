package capi

import (
	"context"
	"math"
	"slices"
	"time"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// request is a request that a program has the handle of.
type request struct {
	mpi.Request
	// send is the other half of MPI_Isendrecv, whose status is that of the receive, and to is the memory of what it sends.
	send mpi.Request
	to   []byte
	// persistent: its handle is the program's until it frees the request. begin starts it again, if it is a collective call.
	persistent bool
	begin      func() (mpi.Request, error)
	// general is that of MPI_Grequest_start.
	general *general
	// partitioned is that of MPI_Psend_init or MPI_Precv_init.
	partitioned *mpi.Partitioned
	comm        *comm
}

// active reports whether the request is to be waited for.
func (r *request) active() bool { return r.general != nil || r.Active() || r.send.Active() }

// done reports whether all of it has ended, and changes nothing.
func (r *request) done() bool {
	if r.general != nil {
		return r.general.completed()
	}
	_, a, _ := r.Peek()
	_, b, _ := r.send.Peek()
	return a && b
}

// finish waits for all of it. The standard gives the status of a send no source and no tag: unset leaves what the program has there, as
// MPICH does, of whose programs some read it.
func (r *request) finish() (mpi.Status, error) {
	if r.general != nil {
		return r.general.finish()
	}
	inactive := r.persistent && !r.Active()
	st, err := r.Wait(context.Background())
	if _, sendErr := r.send.Wait(context.Background()); err == nil {
		err = sendErr
	}
	if st.Source == mpi.AnySource && !inactive {
		st.Source = unset
	}
	return st, err
}

// unset is the source of a status of which setStatus sets nothing but whether the request was cancelled.
const unset = math.MinInt

// await waits until one of the requests may have ended.
func await(list []*request) {
	var few [16]mpi.Request
	parts, general := few[:0], false
	for _, r := range list {
		switch {
		case r == nil || !r.active():
		case r.general != nil:
			general = true
		default:
			for _, part := range [...]mpi.Request{r.Request, r.send} {
				if _, done, _ := part.Peek(); !done {
					parts = append(parts, part)
				}
			}
		}
	}
	if general { // its end wakes nobody who waits for several
		time.Sleep(generalPoll)
		return
	}
	mpi.Await(context.Background(), parts)
}

// generalPoll is how often a caller that waits for several requests asks for generalized ones among them.
const generalPoll = 20 * time.Microsecond

var _ = add(map[string]implementation{
	"Wait":               (*args).wait,
	"Test":               (*args).test,
	"Waitall":            func(a *args) error { return a.all(2, true) },
	"Testall":            func(a *args) error { return a.all(3, false) },
	"Waitany":            func(a *args) error { return a.any(true) },
	"Testany":            func(a *args) error { return a.any(false) },
	"Waitsome":           func(a *args) error { return a.some(true) },
	"Testsome":           func(a *args) error { return a.some(false) },
	"Request_free":       (*args).requestFree,
	"Request_get_status": (*args).requestStatus,
	"Cancel":             (*args).cancel,
	"Start":              (*args).start,
	"Startall":           (*args).startall,

	"Test_cancelled":       (*args).testCancelled,
	"Status_set_cancelled": (*args).setCancelled,
	"Status_get_source":    func(a *args) error { return a.getStatus(a.l.abi.status.source) },
	"Status_get_tag":       func(a *args) error { return a.getStatus(a.l.abi.status.tag) },
	"Status_get_error":     func(a *args) error { return a.getStatus(a.l.abi.status.err) },
	"Status_set_source":    func(a *args) error { return a.setStatus(a.l.abi.status.source) },
	"Status_set_tag":       func(a *args) error { return a.setStatus(a.l.abi.status.tag) },
	"Status_set_error":     func(a *args) error { return a.setStatus(a.l.abi.status.err) },
	"Get_count":            (*args).getCount,
	"Get_elements":         (*args).getElements,
	"Get_elements_x":       func(a *args) error { a.wide = true; return a.getElements() },
	"Status_set_elements":  (*args).setElements,
	"Status_set_elements_x": func(a *args) error {
		a.wide = true
		return a.setElements()
	},
})

// newRequest gives a request that was started a handle.
func (a *args) newRequest(i int, r mpi.Request, err error, persistent bool) error {
	if err != nil {
		return err
	}
	p, err := a.where(i)
	if err != nil {
		cancelAll(r)
		return err
	}
	return a.l.newRequest(p, r, persistent, a.comm)
}

// newRequest does so where the handle is to be.
func (l *Library) newRequest(p unsafe.Pointer, r mpi.Request, persistent bool, c *comm) error {
	made, handle, err := l.requests.take()
	if err != nil {
		cancelAll(r)
		return err
	}
	made.Request, made.persistent, made.comm = r, persistent, c
	l.setHandleAt(p, 0, handle)
	return nil
}

// cancelAll ends requests that the program cannot have.
func cancelAll(list ...mpi.Request) {
	ended, end := context.WithCancel(context.Background())
	end()
	for _, r := range list {
		_, _ = r.Wait(ended) // the error of the call is the one to report
		_ = r.Free()         // if it is persistent
	}
}

// request returns the request of a handle, or nil if that is MPI_REQUEST_NULL.
func (l *Library) request(h uint64) (*request, error) {
	if h == l.abi.null[kindRequest] {
		return nil, nil
	}
	r := l.requests.get(h)
	if r == nil {
		return nil, errorf(mpi.ErrRequest, "%#x is no request, or has been waited for", h)
	}
	return r, nil
}

// requestIn returns the request whose handle argument 0 points to, and that pointer.
func (a *args) requestIn() (r *request, p unsafe.Pointer, err error) {
	if p, err = a.where(0); err != nil {
		return nil, nil, err
	}
	r, err = a.l.request(a.l.handleAt(p, 0))
	return r, p, err
}

// validRequest is the request of element n of an array, which must not be MPI_REQUEST_NULL.
func (a *args) validRequest(p unsafe.Pointer, n int) (*request, error) {
	r, err := a.l.request(a.l.handleAt(p, n))
	if err != nil {
		return nil, err
	}
	if r == nil {
		return nil, errorf(mpi.ErrRequest, "the request is MPI_REQUEST_NULL")
	}
	a.comm = r.comm
	return r, nil
}

// over forgets the request of element n of an array, which has ended, unless it is persistent.
func (a *args) over(p unsafe.Pointer, n int, r *request) {
	if !r.persistent {
		a.forgetRequest(p, n)
	}
}

func (a *args) forgetRequest(p unsafe.Pointer, n int) {
	a.l.requests.remove(a.l.handleAt(p, n))
	a.l.setHandleAt(p, n, a.l.abi.null[kindRequest])
}

var emptyStatus = mpi.Status{Source: mpi.AnySource, Tag: mpi.AnyTag}

func (a *args) wait() error {
	r, p, err := a.requestIn()
	if err != nil {
		return err
	}
	st := emptyStatus
	if r != nil {
		a.comm = r.comm
		st, err = r.finish()
		a.over(p, 0, r)
	}
	a.status(1, &st)
	return err
}

func (a *args) test() error {
	r, p, err := a.requestIn()
	if err != nil {
		return err
	}
	if _, err := a.where(1); err != nil {
		return err
	}
	st, done := emptyStatus, true
	if r != nil {
		a.comm = r.comm
		if done = r.done(); done {
			st, err = r.finish()
			a.over(p, 0, r)
		}
	}
	if e := a.setFlag(1, done); e != nil {
		return e
	}
	if done {
		a.status(2, &st)
	}
	return err
}

// requestList reads the requests of arguments 0 and 1: a count and an array.
func (a *args) requestList(few *[fewRequests]*request) (p unsafe.Pointer, list []*request, err error) {
	n := a.int(0)
	if n < 0 {
		return nil, nil, errorf(mpi.ErrCount, "%d requests", n)
	}
	if n == 0 {
		return nil, nil, nil
	}
	if p, err = a.where(1); err != nil {
		return nil, nil, err
	}
	list = few[:0]
	if n > len(few) {
		list = make([]*request, 0, n)
	}
	list = list[:n]
	for i := range list {
		if list[i], err = a.l.request(a.l.handleAt(p, i)); err != nil {
			return nil, nil, err
		}
		if list[i] != nil && a.comm == nil {
			a.comm = list[i].comm
		}
	}
	return p, list, nil
}

// fewRequests are as many as need no memory of their own.
const fewRequests = 32

// all waits for, or tests, all requests.
func (a *args) all(statuses int, wait bool) error {
	var few [fewRequests]*request
	p, list, err := a.requestList(&few)
	if err != nil {
		return err
	}
	to := a.statuses(statuses)
	if !wait {
		for _, r := range list {
			if r != nil && !r.done() {
				return a.setFlag(2, false)
			}
		}
		if err := a.setFlag(2, true); err != nil {
			return err
		}
	}
	var failed error
	for i, r := range list {
		st := emptyStatus
		var err error
		if r != nil {
			st, err = r.finish()
			a.over(p, i, r)
		}
		failed = a.outcome(to, i, &st, err, failed)
	}
	// Those that ended before an error have a status as well.
	return failed
}

// outcome writes the status of one of several requests. It returns the error of the call.
func (a *args) outcome(to unsafe.Pointer, i int, st *mpi.Status, err, failed error) error {
	if to != nil {
		at := unsafe.Add(to, uintptr(i)*a.l.abi.status.size)
		a.l.setStatus(at, st)
		code := 0
		if err != nil {
			code = a.l.codes.code(err)
		}
		a.l.setError(at, code)
	}
	if err == nil {
		return failed
	}
	if failed == nil {
		return &inStatusError{err}
	}
	return failed
}

// inStatusError is the error of a call whose statuses have the errors of its requests. The first one explains it.
type inStatusError struct{ first error }

func (e *inStatusError) Error() string {
	return "the statuses have the errors; the first one is: " + e.first.Error()
}

// As makes it an error of its class.
func (e *inStatusError) As(to any) bool {
	if own, ok := to.(**callError); ok {
		*own = &callError{mpi.ErrInStatus, e.Error()}
		return true
	}
	return false
}

// any waits for, or tests, one of several requests.
func (a *args) any(wait bool) error {
	var few [fewRequests]*request
	p, list, err := a.requestList(&few)
	if err != nil {
		return err
	}
	status := 3
	if !wait {
		status = 4
	}
	for i := 2; i < status; i++ { // before a request is over
		if _, err := a.where(i); err != nil {
			return err
		}
	}
	for {
		index, active := -1, false
		for i, r := range list {
			if r == nil || !r.active() {
				continue
			}
			active = true
			if r.done() {
				index = i
				break
			}
		}
		switch {
		case index >= 0:
			r := list[index]
			a.comm = r.comm
			st, err := r.finish()
			a.over(p, index, r)
			a.status(status, &st)
			return a.picked(index, wait, err)
		case !active:
			st := emptyStatus
			a.status(status, &st)
			return a.picked(a.l.abi.undefined, wait, nil)
		case !wait:
			if err := a.setInt(2, a.l.abi.undefined); err != nil {
				return err
			}
			return a.setFlag(3, false)
		}
		await(list)
	}
}

// picked gives the index of one of several requests.
func (a *args) picked(index int, wait bool, err error) error {
	if e := a.setInt(2, index); e != nil {
		return e
	}
	if !wait {
		if e := a.setFlag(3, true); e != nil {
			return e
		}
	}
	return err
}

// some waits for at least one of several requests, or tests them.
func (a *args) some(wait bool) error {
	var few [fewRequests]*request
	p, list, err := a.requestList(&few)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(list, func(r *request) bool { return r != nil && r.active() }) {
		return a.setInt(2, a.l.abi.undefined)
	}
	count, err := a.where(2)
	if err != nil {
		return err
	}
	indices, err := a.where(3)
	if err != nil {
		return err
	}
	to := a.statuses(4)
	var failed error
	n := 0
	for {
		for i, r := range list {
			if r == nil || !r.active() || !r.done() {
				continue
			}
			st, err := r.finish()
			failed = a.outcome(to, n, &st, err, failed)
			a.over(p, i, r)
			*(*int32)(unsafe.Add(indices, 4*n)) = int32(i)
			n++
		}
		if n > 0 || !wait {
			break
		}
		await(list)
	}
	*(*int32)(count) = int32(n)
	return failed
}

// free has the request go on by itself, if it is active.
func (r *request) free() error {
	switch {
	case r.partitioned != nil:
		return r.partitioned.Free()
	case r.begin != nil && !r.Active():
		return nil
	case r.send != mpi.Request{}:
		if err := r.send.Free(); err != nil {
			return err
		}
	}
	return r.Free()
}

func (a *args) requestFree() error {
	p, err := a.where(0)
	if err != nil {
		return err
	}
	r, err := a.validRequest(p, 0)
	if err != nil {
		return err
	}
	if r.general != nil {
		h := a.l.handleAt(p, 0)
		a.l.setHandleAt(p, 0, a.l.abi.null[kindRequest])
		return r.general.release(h)
	}
	if err := r.free(); err != nil {
		return err
	}
	a.forgetRequest(p, 0)
	return nil
}

func (a *args) requestStatus() error {
	r, err := a.l.request(a.handle(0, kindRequest))
	if err != nil {
		return err
	}
	if r == nil {
		st := emptyStatus
		a.status(2, &st)
		return a.setFlag(1, true)
	}
	a.comm = r.comm
	if r.general != nil {
		return a.generalStatus(r)
	}
	st, _, err := r.Peek()
	done := r.done()
	if !done {
		err = nil
	}
	if e := a.setFlag(1, done); e != nil {
		return e
	}
	if done {
		a.status(2, &st)
	}
	return err
}

func (a *args) cancel() error {
	p, err := a.where(0)
	if err != nil {
		return err
	}
	r, err := a.validRequest(p, 0)
	if err != nil {
		return err
	}
	if r.general != nil {
		return codeError(a.l.back.GeneralCancel(r.general.cancel, r.general.extra, r.general.completed()))
	}
	return r.Cancel()
}

func (a *args) start() error {
	p, err := a.where(0)
	if err != nil {
		return err
	}
	return a.startAt(p, 0)
}

func (a *args) startAt(p unsafe.Pointer, i int) error {
	r, err := a.validRequest(p, i)
	if err != nil {
		return err
	}
	if r.begin == nil {
		return r.Start()
	}
	if r.Active() {
		return errorf(mpi.ErrRequest, "the request is active: wait for it before starting it again")
	}
	r.Request, err = r.begin()
	return err
}

func (a *args) startall() error {
	n := a.int(0)
	if n <= 0 {
		return nil
	}
	p, err := a.where(1)
	for i := 0; i < n && err == nil; i++ {
		err = a.startAt(p, i)
	}
	return err
}

func (a *args) statusOf() (mpi.Status, error) {
	p, err := a.where(0)
	if err != nil {
		return mpi.Status{}, err
	}
	if uintptr(p) == a.l.abi.statusIgnore {
		return mpi.Status{}, errorf(mpi.ErrArg, "the status is MPI_STATUS_IGNORE")
	}
	return a.l.statusAt(p), nil
}

// statusField is a field of the status of argument 0: an int of the program's, whatever it is.
func (a *args) statusField(offset uintptr) (*int32, error) {
	if _, err := a.statusOf(); err != nil {
		return nil, err
	}
	return (*int32)(unsafe.Add(a.pointer(0), offset)), nil
}

func (a *args) getStatus(offset uintptr) error {
	p, err := a.statusField(offset)
	if err != nil {
		return err
	}
	return a.setInt(1, int(*p))
}

func (a *args) setStatus(offset uintptr) error {
	p, err := a.statusField(offset)
	if err == nil {
		*p = int32(a.int(1))
	}
	return err
}

func (a *args) testCancelled() error {
	st, err := a.statusOf()
	if err != nil {
		return err
	}
	return a.setFlag(1, st.Cancelled)
}

func (a *args) setCancelled() error {
	st, err := a.statusOf()
	if err != nil {
		return err
	}
	a.l.setBytes(a.pointer(0), st.Bytes, a.int(1) != 0)
	return nil
}

// received decodes a status and a datatype.
func (a *args) received() (st mpi.Status, t *dtype, err error) {
	if st, err = a.statusOf(); err == nil {
		t, err = a.datatype(1)
	}
	return st, t, err
}

func (a *args) getCount() error {
	st, t, err := a.received()
	if err != nil {
		return err
	}
	return a.setCount(2, int64(mpi.CountOf(st, t.Type)))
}

func (a *args) getElements() error {
	st, t, err := a.received()
	if err != nil {
		return err
	}
	return a.setCount(2, int64(mpi.Elements(st, t.Type)))
}

func (a *args) setElements() error {
	st, t, err := a.received()
	if err != nil {
		return err
	}
	n := a.count(2)
	if n < 0 {
		return errorf(mpi.ErrCount, "%d elements", n)
	}
	a.l.setBytes(a.pointer(0), t.bytesOf(n), st.Cancelled)
	return nil
}

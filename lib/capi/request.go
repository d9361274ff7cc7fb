package capi

import (
	"context"
	"errors"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// request is a request that a program has the handle of.
type request struct {
	mpi.Request
	// persistent: its handle is the program's until it frees the request.
	persistent bool
	comm       *comm
}

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
	made, handle, err := a.l.requests.take()
	if err != nil {
		return err
	}
	made.Request, made.persistent, made.comm = r, persistent, a.comm
	return a.setHandle(i, handle)
}

// requestAt returns the request that element n of an array has, or nil if that is MPI_REQUEST_NULL.
func (a *args) requestAt(p unsafe.Pointer, n int) (*request, uint64, error) {
	h := a.l.handleAt(p, n)
	if h == a.l.abi.null[kindRequest] {
		return nil, h, nil
	}
	r := a.l.requests.get(h)
	if r == nil {
		return nil, h, errorf(mpi.ErrRequest, "%#x is no request, or has been waited for", h)
	}
	return r, h, nil
}

// over forgets a request that has ended, unless it is persistent.
func (a *args) over(p unsafe.Pointer, n int, r *request, h uint64) {
	if r == nil || r.persistent {
		return
	}
	a.l.requests.remove(h)
	a.l.setHandleAt(p, n, a.l.abi.null[kindRequest])
}

var emptyStatus = mpi.Status{Source: mpi.AnySource, Tag: mpi.AnyTag}

func (a *args) wait() error {
	p, err := a.where(0)
	if err != nil {
		return err
	}
	r, h, err := a.requestAt(p, 0)
	if err != nil {
		return err
	}
	st := emptyStatus
	if r != nil {
		a.comm = r.comm
		st, err = r.Wait(context.Background())
		a.over(p, 0, r, h)
	}
	a.status(1, &st)
	return err
}

func (a *args) test() error {
	p, err := a.where(0)
	if err != nil {
		return err
	}
	r, h, err := a.requestAt(p, 0)
	if err != nil {
		return err
	}
	st, done := emptyStatus, true
	if r != nil {
		a.comm = r.comm
		if st, done, err = r.Test(); done {
			a.over(p, 0, r, h)
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

// list reads the requests of arguments 0 and 1: a count and an array.
func (a *args) requestList() (p unsafe.Pointer, list []*request, err error) {
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
	list = make([]*request, n)
	for i := range list {
		if list[i], _, err = a.requestAt(p, i); err != nil {
			return nil, nil, err
		}
		if list[i] != nil && a.comm == nil {
			a.comm = list[i].comm
		}
	}
	return p, list, nil
}

// requestsOf are those that package mpi knows: none for MPI_REQUEST_NULL.
func requestsOf(list []*request) []mpi.Request {
	of := make([]mpi.Request, len(list))
	for i, r := range list {
		if r != nil {
			of[i] = r.Request
		}
	}
	return of
}

// all waits for, or tests, all requests.
func (a *args) all(statuses int, wait bool) error {
	p, list, err := a.requestList()
	if err != nil {
		return err
	}
	to := a.statuses(statuses)
	if !wait {
		for _, r := range list {
			if r == nil {
				continue
			}
			if _, done, _ := r.Peek(); !done {
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
			st, err = r.Wait(context.Background())
			a.over(p, i, r, a.l.handleAt(p, i))
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
	p, list, err := a.requestList()
	if err != nil {
		return err
	}
	var index int
	var st mpi.Status
	done := true
	if of := requestsOf(list); wait {
		index, st, err = mpi.Waitany(context.Background(), of)
	} else {
		index, st, done, err = mpi.Testany(of)
	}
	status := 3
	if !wait {
		if e := a.setFlag(3, done); e != nil {
			return e
		}
		status = 4
	}
	to := a.l.abi.undefined
	if index != mpi.Undefined {
		to = index
		a.comm = list[index].comm
		a.over(p, index, list[index], a.l.handleAt(p, index))
	}
	if e := a.setInt(2, to); e != nil {
		return e
	}
	if done {
		a.status(status, &st)
	}
	return err
}

// some waits for at least one of several requests, or tests them.
func (a *args) some(wait bool) error {
	p, list, err := a.requestList()
	if err != nil {
		return err
	}
	active := false
	for _, r := range list {
		active = active || r != nil && r.Active()
	}
	if !active {
		return a.setInt(2, a.l.abi.undefined)
	}
	of := requestsOf(list)
	statuses := make([]mpi.Status, len(of))
	var indices []int
	if wait {
		indices, err = mpi.Waitsome(context.Background(), of, nil, statuses)
	} else {
		indices, err = mpi.Testsome(of, nil, statuses)
	}
	if err != nil && !errors.Is(err, mpi.ErrInStatus) {
		return err
	}
	to := a.statuses(4)
	var failed error
	for k, i := range indices {
		failed = a.outcome(to, k, &statuses[k], statuses[k].Err, failed)
		a.over(p, i, list[i], a.l.handleAt(p, i))
	}
	if e := a.setInt(2, len(indices)); e != nil {
		return e
	}
	if e := a.setInts(3, indices); e != nil {
		return e
	}
	return failed
}

func (a *args) requestFree() error {
	p, err := a.where(0)
	if err != nil {
		return err
	}
	r, h, err := a.requestAt(p, 0)
	if err != nil {
		return err
	}
	if r == nil {
		return errorf(mpi.ErrRequest, "the request is MPI_REQUEST_NULL")
	}
	a.comm = r.comm
	if err := r.Free(); err != nil {
		return err
	}
	a.l.requests.remove(h)
	a.l.setHandleAt(p, 0, a.l.abi.null[kindRequest])
	return nil
}

func (a *args) requestStatus() error {
	h := a.handle(0, kindRequest)
	if h == a.l.abi.null[kindRequest] {
		st := emptyStatus
		a.status(2, &st)
		return a.setFlag(1, true)
	}
	r := a.l.requests.get(h)
	if r == nil {
		return errorf(mpi.ErrRequest, "%#x is no request, or has been waited for", h)
	}
	a.comm = r.comm
	st, done, err := r.Peek()
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
	r, _, err := a.requestAt(p, 0)
	if err != nil {
		return err
	}
	if r == nil {
		return errorf(mpi.ErrRequest, "the request is MPI_REQUEST_NULL")
	}
	a.comm = r.comm
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
	r, _, err := a.requestAt(p, i)
	if err != nil {
		return err
	}
	if r == nil {
		return errorf(mpi.ErrRequest, "the request is MPI_REQUEST_NULL")
	}
	a.comm = r.comm
	return r.Start()
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

func (a *args) getCount() error {
	st, err := a.statusOf()
	if err != nil {
		return err
	}
	t, err := a.datatype(1)
	if err != nil {
		return err
	}
	return a.setCount(2, int64(mpi.CountOf(st, t.Type)))
}

func (a *args) getElements() error {
	st, err := a.statusOf()
	if err != nil {
		return err
	}
	t, err := a.datatype(1)
	if err != nil {
		return err
	}
	return a.setCount(2, int64(mpi.Elements(st, t.Type)))
}

func (a *args) setElements() error {
	st, err := a.statusOf()
	if err != nil {
		return err
	}
	t, err := a.datatype(1)
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

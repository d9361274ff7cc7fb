package capi

import (
	"errors"
	"slices"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// requestList returns the requests of a call whose argument 0 is their number and whose argument 1 is the array of
// their handles.
func (a *args) requestList(few *[fewRequests]*request) (p unsafe.Pointer, list []*request) {
	n := a.int(0)
	if n < 0 {
		panic(failf(mpi.ErrCount, "%d requests", n))
	}
	if n == 0 {
		return nil, nil
	}
	p = a.checkedPointer(1)
	list = few[:0]
	if n > len(few) {
		list = make([]*request, 0, n)
	}
	list = list[:n]
	for i := range list {
		list[i] = must(a.lib.request(a.lib.handleAt(p, i)))
		if list[i] != nil && a.comm == nil {
			a.comm = list[i].comm
		}
	}
	return p, list
}

// fewRequests is the maximum number of requests for which requestList does not allocate memory.
const fewRequests = 32

// waitAll implements MPI_Waitall and MPI_Testall.
func (a *args) waitAll(statuses int, wait bool) {
	var few [fewRequests]*request
	p, list := a.requestList(&few)
	to := a.statusArray(statuses)
	if !wait {
		for _, r := range list {
			if r != nil && !r.done() {
				a.setFlag(2, false)
				return
			}
		}
		a.setFlag(2, true)
	}
	pending := wait && len(list) > 0 && a.lib.world.HasDeployed() && !awaitAll(list)
	var failed error
	for i, req := range list {
		st := emptyStatus
		var err error
		switch {
		case req == nil:
		case pending && !req.done():
			err = errDepends
		default:
			st, err = req.finish()
			a.dropCompleted(p, i, req)
		}
		failed = a.recordOutcome(to, i, &st, err, failed)
	}
	// Requests that completed before the error occurred get their statuses as well.
	check(failed)
}

// errDepends is the error reported for a request that is still pending because another one has failed.
var errDepends = errorf(mpi.ErrPending, "the request is pending: another request of the call failed, on which it "+
	"may depend. Wait for it again, or cancel it")

// recordOutcome writes the status of one of several requests that a call waits for. The parameter failed is the call's
// error so far; recordOutcome returns the new one.
func (a *args) recordOutcome(to unsafe.Pointer, i int, st *mpi.Status, err, failed error) error {
	if to != nil {
		at := unsafe.Add(to, uintptr(i)*a.lib.abi.status.size)
		a.lib.setStatus(at, st)
		code := 0
		if err != nil {
			code = a.lib.codes.code(err)
			if errors.Is(err, errDepends) { // programs compare the error field with MPI_ERR_PENDING
				code = a.lib.codes.classes[mpi.ErrPending]
			}
		}
		a.lib.setError(at, code)
	}
	if err == nil {
		return failed
	}
	if failed, ok := errors.AsType[*inStatusError](failed); ok && !errors.Is(failed.first, errDepends) {
		return failed
	}
	return &inStatusError{err}
}

// inStatusError is the error of a call whose statuses contain the errors of its requests. It holds the first of
// these errors.
type inStatusError struct{ first error }

func (e *inStatusError) Error() string {
	return "the errors are in the statuses; the first one is: " + e.first.Error()
}

// As converts the error to a callError of class ErrInStatus, so that classOf finds that class.
func (e *inStatusError) As(to any) bool {
	if own, ok := to.(**callError); ok {
		*own = &callError{mpi.ErrInStatus, e.Error()}
		return true
	}
	return false
}

// waitAny implements MPI_Waitany and MPI_Testany.
func (a *args) waitAny(wait bool) {
	var few [fewRequests]*request
	p, list := a.requestList(&few)
	status := 3
	if !wait {
		status = 4
	}
	for i := 2; i < status; i++ { // check before any request is consumed
		a.checkedPointer(i)
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
			a.dropCompleted(p, index, r)
			a.status(status, &st)
			a.setIndex(index, wait, err)
			return
		case !active:
			st := emptyStatus
			a.status(status, &st)
			a.setIndex(a.lib.abi.undefined, wait, nil)
			return
		case !wait:
			a.setInt(2, a.lib.abi.undefined)
			a.setFlag(3, false)
			return
		}
		awaitAny(list)
	}
}

// setIndex writes the index of one of several requests.
func (a *args) setIndex(index int, wait bool, err error) {
	a.setInt(2, index)
	if !wait {
		a.setFlag(3, true)
	}
	check(err)
}

// waitSome implements MPI_Waitsome and MPI_Testsome.
func (a *args) waitSome(wait bool) {
	var few [fewRequests]*request
	p, list := a.requestList(&few)
	if !slices.ContainsFunc(list, func(r *request) bool { return r != nil && r.active() }) {
		a.setInt(2, a.lib.abi.undefined)
		return
	}
	count := a.checkedPointer(2)
	indices := a.checkedPointer(3)
	to := a.statusArray(4)
	var failed error
	n := 0
	for {
		for i, req := range list {
			if req == nil || !req.active() || !req.done() {
				continue
			}
			st, err := req.finish()
			failed = a.recordOutcome(to, n, &st, err, failed)
			a.dropCompleted(p, i, req)
			*(*int32)(unsafe.Add(indices, 4*n)) = int32(i)
			n++
		}
		if n > 0 || !wait {
			break
		}
		awaitAny(list)
	}
	*(*int32)(count) = int32(n)
	check(failed)
}

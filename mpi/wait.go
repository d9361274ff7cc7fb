package mpi

import (
	"context"
	"sync"
)

// Waitall waits for all of the requests to end, and puts their statuses into
// statuses unless that is nil. If some failed, the error is ErrInStatus, and
// errors.Is and errors.As find theirs in it. When ctx ends first, all that have
// not ended are cancelled.
//
// In a cluster with FPGAs or upstream's programs, Waitall waits for no more once a
// request has failed because its peer does not go on: others may depend on it. The
// errors of those that have not ended are ErrPending, and they stay active.
func Waitall(ctx context.Context, requests []Request, statuses []Status) error {
	const op = "Waitall"
	if err := checkRoom(op, requests, statuses); err != nil {
		return err
	}
	failed := requestsError{total: len(requests)}
	var unused Status
	rest := restOfAll{requests: requests}
	for i, r := range requests {
		st := &unused
		if statuses != nil {
			st = &statuses[i]
		}
		rest.next = i
		st.Err = r.waitAmong(ctx, st, &rest)
		rest.broken = rest.broken || isBroken(st.Err)
		failed.add(i, st.Err)
	}
	return failed.result(op)
}

// Testall is Waitall if all of the requests have ended. Otherwise it reports
// false, and they stay as they are.
func Testall(requests []Request, statuses []Status) (bool, error) {
	const op = "Testall"
	if err := checkRoom(op, requests, statuses); err != nil {
		return false, err
	}
	for _, r := range requests {
		if r.state() == active {
			return false, nil
		}
	}
	failed := requestsError{total: len(requests)}
	for i, r := range requests {
		st, _, err := r.Test()
		failed.take(i, st, err, statuses, i)
	}
	return true, failed.result(op)
}

// Waitany waits for one of the requests to end, and gives its index, status and
// error. If none is active, the index is Undefined. When ctx ends first, all of
// them are cancelled, as by Wait: this call gives the error of one, and later
// ones give those of the others.
func Waitany(ctx context.Context, requests []Request) (int, Status, error) {
	i := awaitAny(ctx, requests)
	if i == Undefined {
		return i, emptyStatus, nil
	}
	st, err := requests[i].Wait(ctx) // at once
	return i, st, err
}

// Testany is Waitany if one of the requests has ended or none is active, and
// reports false otherwise.
func Testany(requests []Request) (int, Status, bool, error) {
	i, active := firstEnded(requests)
	if i == Undefined {
		return i, emptyStatus, active == 0, nil
	}
	st, done, err := requests[i].Test()
	return i, st, done, err
}

// Waitsome waits for at least one of the requests to end, and gives the indices
// of all that have; statuses[k] is the status of the k-th of them, unless
// statuses is nil. The indices are in the memory of indices, if that has room
// for them; it may be nil. If no request is active, there are none. If some
// failed, the error is ErrInStatus. When ctx ends first, all of them are
// cancelled.
func Waitsome(ctx context.Context, requests []Request, indices []int, statuses []Status) ([]int, error) {
	const op = "Waitsome"
	if err := checkRoom(op, requests, statuses); err != nil {
		return nil, err
	}
	return takeEnded(op, requests, awaitAny(ctx, requests), indices[:0], statuses)
}

// Testsome is Waitsome without waiting: there are no indices if none has ended.
func Testsome(requests []Request, indices []int, statuses []Status) ([]int, error) {
	const op = "Testsome"
	if err := checkRoom(op, requests, statuses); err != nil {
		return nil, err
	}
	return takeEnded(op, requests, Undefined, indices[:0], statuses)
}

func checkRoom(op string, requests []Request, statuses []Status) error {
	if statuses != nil && len(statuses) < len(requests) {
		return errorf(ErrArg, op, "there are %d statuses for %d requests: give as many, or nil", len(statuses), len(requests))
	}
	return nil
}

// firstEnded gives the index of the first request that has ended, or Undefined
// and how many are active.
func firstEnded(requests []Request) (index, pending int) {
	for i, r := range requests {
		switch r.state() {
		case ended:
			return i, pending
		case active:
			pending++
		}
	}
	return Undefined, pending
}

// wakers are the channels of goroutines that wait for one of many. They may contain
// a value of an earlier wait: a goroutine checks again after each value.
var wakers = sync.Pool{New: func() any { return make(chan struct{}, 1) }}

// awaitAny is Foreign.Await.
func awaitAny(ctx context.Context, requests []Request) int {
	i, pending := firstEnded(requests)
	if i != Undefined || pending == 0 {
		return i
	}
	wake := wakers.Get().(chan struct{})
	defer wakers.Put(wake)
	p, taken := notifyAll(requests, wake)
	if taken != Undefined {
		return taken
	}
	defer notifyAll(requests, nil)
	for i == Undefined && pending > 0 && p != nil {
		// Requests of other devices go on, and wake us all the same.
		if p.dev.Await(ctx, wake) != nil {
			cancelAll(ctx, requests)
		}
		i, pending = firstEnded(requests)
	}
	return i
}

// notifyAll has a value sent to n when one of the requests completes, or no longer if n is nil. It returns the process
// of one that is active, or nil. If another goroutine waits for one of them, its index is taken, and n gets no value;
// otherwise taken is Undefined.
func notifyAll(requests []Request, n chan<- struct{}) (p *process, taken int) {
	for i, r := range requests {
		q, busy := r.notify(n)
		if busy {
			notifyAll(requests[:i], nil)
			return nil, i
		}
		if q != nil {
			p = q
		}
	}
	return p, Undefined
}

// cancelAll cancels all requests because ctx has ended. Their outcomes stay.
func cancelAll(ctx context.Context, requests []Request) {
	for _, r := range requests {
		r.abort(ctx)
	}
}

// take takes the outcome of a request, whose status is number at of statuses unless these
// are nil.
func (e *requestsError) take(index int, st Status, err error, statuses []Status, at int) {
	e.add(index, err)
	if statuses != nil {
		st.Err = err
		statuses[at] = st
	}
}

// takeEnded returns the outcomes of all completed requests, and that of requests[also] unless also is Undefined.
func takeEnded(op string, requests []Request, also int, indices []int, statuses []Status) ([]int, error) {
	failed := requestsError{total: len(requests)}
	for i, r := range requests {
		if i != also && r.state() != ended {
			continue
		}
		st, _, err := r.Test()
		failed.take(i, st, err, statuses, len(indices))
		indices = append(indices, i)
	}
	return indices, failed.result(op)
}

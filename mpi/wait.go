package mpi

import (
	"context"
	"sync"
)

// Waitall waits until all requests are done, and stores their statuses in statuses unless that is nil. If any
// request failed, the error is ErrInStatus, and errors.Is and errors.As search the errors of all requests. If
// ctx is done first, all pending requests are cancelled.
//
// In a cluster with FPGAs or upstream's programs, Waitall stops waiting once a request has failed because its
// peer cannot continue, since other requests may depend on that peer. The error of each pending request is then
// ErrPending, and the request remains active.
func Waitall(ctx context.Context, requests []Request, statuses []Status) error {
	const op = "Waitall"
	if err := checkStatuses(op, requests, statuses); err != nil {
		return err
	}
	failed := requestsError{total: len(requests)}
	var unused Status
	rest := remainingRequests{requests: requests}
	for i, request := range requests {
		st := &unused
		if statuses != nil {
			st = &statuses[i]
		}
		rest.next = i
		st.Err = request.waitOneOf(ctx, st, &rest)
		rest.peerFailed = rest.peerFailed || isPeerStuck(st.Err)
		failed.add(i, st.Err)
	}
	return failed.result(op)
}

// Testall acts like Waitall if all requests are done. Otherwise it returns false and leaves the requests unchanged.
func Testall(requests []Request, statuses []Status) (bool, error) {
	const op = "Testall"
	if err := checkStatuses(op, requests, statuses); err != nil {
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
		failed.recordOutcome(i, st, err, statuses, i)
	}
	return true, failed.result(op)
}

// Waitany waits until one of the requests is done, and returns its index, status and error. If no request is
// active, the index is Undefined. If ctx is done first, all requests are cancelled, as by Wait; this call
// returns the error of one of them, and later calls return the errors of the others.
func Waitany(ctx context.Context, requests []Request) (int, Status, error) {
	i := awaitAny(ctx, requests)
	if i == Undefined {
		return i, emptyStatus, nil
	}
	st, err := requests[i].Wait(ctx) // returns immediately
	return i, st, err
}

// Testany acts like Waitany if one of the requests is done or none is active. Otherwise it returns false.
func Testany(requests []Request) (int, Status, bool, error) {
	i, active := firstEnded(requests)
	if i == Undefined {
		return i, emptyStatus, active == 0, nil
	}
	st, done, err := requests[i].Test()
	return i, st, done, err
}

// Waitsome waits until at least one of the requests is done, and returns the indices of all requests that are.
// Unless statuses is nil, statuses[k] is set to the status of the k-th of them. The result reuses the memory of
// indices if its capacity suffices; indices may be nil. If no request is active, the result is empty. If any
// request failed, the error is ErrInStatus. If ctx is done first, all requests are cancelled.
func Waitsome(ctx context.Context, requests []Request, indices []int, statuses []Status) ([]int, error) {
	const op = "Waitsome"
	if err := checkStatuses(op, requests, statuses); err != nil {
		return nil, err
	}
	return takeEnded(op, requests, awaitAny(ctx, requests), indices[:0], statuses)
}

// Testsome is Waitsome without waiting: the result is empty if no request is done.
func Testsome(requests []Request, indices []int, statuses []Status) ([]int, error) {
	const op = "Testsome"
	if err := checkStatuses(op, requests, statuses); err != nil {
		return nil, err
	}
	return takeEnded(op, requests, Undefined, indices[:0], statuses)
}

func checkStatuses(op string, requests []Request, statuses []Status) error {
	if statuses != nil && len(statuses) < len(requests) {
		return errorf(ErrArg, op, "there are %d statuses for %d requests: give as many, or nil", len(statuses),
			len(requests))
	}
	return nil
}

// firstEnded returns the index of the first request that is done. If none is done, it returns Undefined and the
// number of active requests.
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

// wakeChans is a pool of channels for goroutines that wait for one of several requests. A channel may still
// contain a value from an earlier wait, so a goroutine checks the requests after each value.
var wakeChans = sync.Pool{New: func() any { return make(chan struct{}, 1) }}

// awaitAny implements Foreign.AwaitAny.
func awaitAny(ctx context.Context, requests []Request) int {
	i, pending := firstEnded(requests)
	if i != Undefined || pending == 0 {
		return i
	}
	wake := wakeChans.Get().(chan struct{})
	defer wakeChans.Put(wake)
	p, taken := notifyAll(requests, wake)
	if taken != Undefined {
		return taken
	}
	defer notifyAll(requests, nil)
	for i == Undefined && pending > 0 && p != nil {
		// Requests on other devices also make progress, and their completion wakes this goroutine.
		if p.dev.Await(ctx, wake) != nil {
			cancelAll(ctx, requests)
		}
		i, pending = firstEnded(requests)
	}
	return i
}

// notifyAll registers the channel n to receive a value when one of the requests completes, or unregisters the current
// channel if n is nil. It returns the process of an active request, or nil if no request is active. If another
// goroutine waits for one of the requests, taken is the index of that request and n is not registered; otherwise taken
// is Undefined.
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

// cancelAll cancels all requests because ctx is done. Later calls can still return the requests' outcomes.
func cancelAll(ctx context.Context, requests []Request) {
	for _, r := range requests {
		r.abort(ctx)
	}
}

// recordOutcome records the outcome of a request. It stores the status in statuses[at] unless statuses is nil.
func (e *requestsError) recordOutcome(index int, st Status, err error, statuses []Status, at int) {
	e.add(index, err)
	if statuses != nil {
		st.Err = err
		statuses[at] = st
	}
}

// takeEnded returns the outcomes of all completed requests. Unless also is Undefined, it includes the outcome of
// requests[also], even if that request is not complete.
func takeEnded(op string, requests []Request, also int, indices []int, statuses []Status) ([]int, error) {
	failed := requestsError{total: len(requests)}
	for i, r := range requests {
		if i != also && r.state() != ended {
			continue
		}
		st, _, err := r.Test()
		failed.recordOutcome(i, st, err, statuses, len(indices))
		indices = append(indices, i)
	}
	return indices, failed.result(op)
}

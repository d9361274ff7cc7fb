package mpi

import (
	"context"
)

// Waitall waits for all of the requests to end, and puts their statuses into
// statuses unless that is nil. If some failed, the error is ErrInStatus, and
// errors.Is and errors.As find theirs in it. When ctx ends first, all that have
// not ended are taken back.
func Waitall(ctx context.Context, requests []*Request, statuses []Status) error {
	if err := checkRoom("Waitall", requests, statuses); err != nil {
		return err
	}
	for _, r := range requests {
		r.await(ctx)
	}
	return consumeAll("Waitall", requests, statuses)
}

// Testall is Waitall if all of the requests have ended. Otherwise it reports
// false, and they stay as they are.
func Testall(requests []*Request, statuses []Status) (bool, error) {
	if err := checkRoom("Testall", requests, statuses); err != nil {
		return false, err
	}
	for _, r := range requests {
		if r.poll() == active {
			return false, nil
		}
	}
	return true, consumeAll("Testall", requests, statuses)
}

// Waitany waits for one of the requests to end, and gives its index, status and
// error. If none is active, the index is Undefined. When ctx ends first, all of
// them are taken back, as by Wait: this call gives the error of one, and later
// ones give those of the others.
func Waitany(ctx context.Context, requests []*Request) (int, Status, error) {
	awaitAny(ctx, requests)
	i := firstEnded(requests)
	if i == Undefined {
		return i, emptyStatus, nil
	}
	st, err := requests[i].consume()
	return i, st, err
}

// Testany is Waitany if one of the requests has ended or none is active, and
// reports false otherwise.
func Testany(requests []*Request) (int, Status, bool, error) {
	ended, active := pollAll(requests)
	if ended == 0 {
		return Undefined, emptyStatus, active == 0, nil
	}
	i := firstEnded(requests)
	st, err := requests[i].consume()
	return i, st, true, err
}

// Waitsome waits for at least one of the requests to end, and gives the indices
// of all that have; statuses[k] is the status of request indices[k], unless
// statuses is nil. If none is active, it returns nil. If some failed, the error
// is ErrInStatus. When ctx ends first, all of them are taken back.
func Waitsome(ctx context.Context, requests []*Request, statuses []Status) ([]int, error) {
	if err := checkRoom("Waitsome", requests, statuses); err != nil {
		return nil, err
	}
	awaitAny(ctx, requests)
	return consumeEnded("Waitsome", requests, statuses)
}

// Testsome is Waitsome without waiting: it returns nil if none has ended.
func Testsome(requests []*Request, statuses []Status) ([]int, error) {
	if err := checkRoom("Testsome", requests, statuses); err != nil {
		return nil, err
	}
	pollAll(requests)
	return consumeEnded("Testsome", requests, statuses)
}

func checkRoom(op string, requests []*Request, statuses []Status) error {
	if statuses != nil && len(statuses) < len(requests) {
		return errorf(ErrArg, op, "there are %d statuses for %d requests: give as many, or nil", len(statuses), len(requests))
	}
	return nil
}

// pollAll looks at every request, and counts those that have ended and those
// that are active.
func pollAll(requests []*Request) (done, pending int) {
	for _, r := range requests {
		switch r.poll() {
		case ended:
			done++
		case active:
			pending++
		}
	}
	return done, pending
}

// awaitAny waits until one of the requests has ended or none is active.
func awaitAny(ctx context.Context, requests []*Request) {
	done, pending := pollAll(requests)
	if done > 0 || pending == 0 {
		return
	}
	if pending == 1 {
		for _, r := range requests {
			r.await(ctx)
		}
		return
	}
	notify := make(chan struct{}, 1)
	setNotify(requests, notify)
	defer setNotify(requests, nil)
	for done == 0 {
		select {
		case <-notify:
			done, _ = pollAll(requests)
		case <-ctx.Done():
			setNotify(requests, nil)
			for _, r := range requests {
				r.await(ctx)
			}
			return
		}
	}
}

func setNotify(requests []*Request, c chan<- struct{}) {
	for _, r := range requests {
		if op := r.pending(); op != nil {
			op.Notify(c)
		}
	}
}

func firstEnded(requests []*Request) int {
	for i, r := range requests {
		if r.hasEnded() {
			return i
		}
	}
	return Undefined
}

// hasEnded tells whether there is an outcome to consume.
func (r *Request) hasEnded() bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state == ended
}

func consumeAll(op string, requests []*Request, statuses []Status) error {
	failed := requestsError{total: len(requests)}
	for i, r := range requests {
		st, err := r.consume()
		st.Err = err
		failed.add(i, err)
		if statuses != nil {
			statuses[i] = st
		}
	}
	return failed.result(op)
}

func consumeEnded(op string, requests []*Request, statuses []Status) ([]int, error) {
	failed := requestsError{total: len(requests)}
	var indices []int
	for i, r := range requests {
		if !r.hasEnded() {
			continue
		}
		st, err := r.consume()
		st.Err = err
		failed.add(i, err)
		if statuses != nil {
			statuses[len(indices)] = st
		}
		indices = append(indices, i)
	}
	return indices, failed.result(op)
}

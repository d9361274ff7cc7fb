package mpitest

import (
	"errors"

	"github.com/zrlmpi/zrlmpid/mpi"
)

var empty = mpi.Status{Source: mpi.AnySource, Tag: mpi.AnyTag}

// nothing checks that a handle refers to no request.
func (r *rank) nothing(q mpi.Request) {
	r.t.Helper()
	equal(r, "status", got(q.Wait(r.ctx))(r), empty)
	st, done, err := q.Test()
	r.must(err)
	equal(r, "done", done, true)
	equal(r, "status", st, empty)
	i, st, err := mpi.Waitany(r.ctx, []mpi.Request{q, {}})
	r.must(err)
	equal(r, "index", i, mpi.Undefined)
	equal(r, "status", st, empty)
	r.class(q.Cancel(), mpi.ErrRequest)
	r.class(q.Free(), mpi.ErrRequest)
	r.class(q.Start(), mpi.ErrRequest)
}

// stale checks that a stale handle refers to no request, whatever happened to the request that it referred to.
func stale(r *rank) {
	const tag, rounds = 4, 30
	other := 1 - r.Rank()
	r.nothing(mpi.Request{})
	var old []mpi.Request
	for i := range rounds {
		b, c := []int32{-1}, []int32{-1}
		q := got(mpi.Irecv(r.Comm, b, other, tag))(r)
		s := got(mpi.Isend(r.Comm, []int32{int32(i)}, other, tag))(r)
		same := q
		equal(r, "comparison of copies", same == q, true)
		both := []mpi.Request{s, q, q} // q is waited for only once
		statuses := make([]mpi.Status, 3)
		r.must(mpi.Waitall(r.ctx, both, statuses))
		equal(r, "tag", statuses[1].Tag, tag)
		equal(r, "status", statuses[2], empty)
		old = append(old, same, s)
		// The old handles do not refer to later requests.
		later := got(mpi.Irecv(r.Comm, c, other, tag))(r)
		for _, q := range old {
			r.nothing(q)
		}
		r.sync(other) // the next message matches the receive
		s = got(mpi.Isend(r.Comm, []int32{int32(i)}, other, tag))(r)
		st := got(later.Wait(r.ctx))(r)
		equal(r, "cancelled", st.Cancelled, false)
		equal(r, "numbers", [2]int32{b[0], c[0]}, [2]int32{int32(i), int32(i)})
		got(s.Wait(r.ctx))(r)
		old = append(old, later, s)
	}
}

// lateCancels cancels requests through handles that become stale in the meantime. This must not affect other
// requests.
func lateCancels(r *rank) {
	const rounds = 300
	handles := make(chan mpi.Request, rounds)
	failed := make(chan error, 1)
	go func() {
		failed <- func() error {
			for q := range handles {
				for range 5 {
					if err := q.Cancel(); err != nil && !errors.Is(err, mpi.ErrRequest) {
						return err
					}
				}
			}
			return nil
		}()
	}()
	b := []int32{0}
	for i := range rounds {
		q := got(mpi.Irecv(r.Comm, b, 0, 1))(r) // no rank sends this
		handles <- q
		st := got(q.Wait(r.ctx))(r)
		equal(r, "cancelled", st.Cancelled, true)
		q = got(mpi.Irecv(r.Comm, b, 0, 2))(r)
		handles <- mpi.Request{}
		r.must(mpi.Send(r.ctx, r.Comm, []int32{int32(i)}, 0, 2))
		st = got(q.Wait(r.ctx))(r)
		equal(r, "cancelled", st.Cancelled, false)
		equal(r, "number", int(b[0]), i)
	}
	close(handles)
	r.must(<-failed)
}

// freed checks that a freed request still receives the message that it matches.
func freed(r *rank) {
	const tag, n = 6, 50
	other := 1 - r.Rank()
	for range n {
		q := got(mpi.Irecv(r.Comm, []int32{0}, other, tag))(r)
		r.must(q.Free())
		r.nothing(q)
	}
	again := got(mpi.RecvInit(r.Comm, []int32{0}, other, tag))(r)
	r.must(again.Start())
	r.must(again.Free())
	r.nothing(again)
	r.sync(other)
	for i := range n + 1 {
		q := got(mpi.Isend(r.Comm, []int32{int32(i)}, other, tag))(r)
		r.must(q.Free())
	}
	b := []int32{0}
	got(mpi.Sendrecv(r.ctx, r.Comm, []int32{n + 1}, other, tag, b, other, tag))(r)
	equal(r, "number", b[0], n+1)
	for _, start := range []func(*mpi.Comm, []int32, int, int) (mpi.Request, error){
		mpi.SendInit[int32], mpi.RecvInit[int32], mpi.Irecv[int32],
	} {
		q := got(start(r.Comm, b, mpi.ProcNull, tag))(r)
		r.must(q.Free())
		r.nothing(q)
	}
}

// waits tests the calls that wait for several requests, which complete one by one.
func waits(r *rank) {
	const tag, n = 8, 6
	other := 1 - r.Rank()
	if r.Rank() == 0 {
		for range 2 {
			for i := range n {
				r.await(1)
				r.must(mpi.Send(r.ctx, r.Comm, []int32{int32(i)}, 1, tag+i))
			}
		}
		return
	}
	post := func() (requests []mpi.Request) {
		for i := range n {
			requests = append(requests, got(mpi.Irecv(r.Comm, []int32{0}, other, tag+i))(r))
		}
		return requests
	}
	requests := post()
	for i := range n {
		r.notify(0, 0)
		k, st, err := mpi.Waitany(r.ctx, requests)
		r.must(err)
		equal(r, "index", k, i)
		equal(r, "tag", st.Tag, tag+i)
	}
	requests = post()
	indices := make([]int, 0, n)
	for i := range n {
		r.notify(0, 0)
		done := got(mpi.Waitsome(r.ctx, requests, indices, nil))(r)
		equal(r, "ended", len(done), 1)
		equal(r, "index", done[0], i)
		equal(r, "memory", &done[0] == &indices[:1][0], true)
	}
}

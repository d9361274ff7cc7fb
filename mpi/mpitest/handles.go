package mpitest

import (
	"errors"

	"github.com/zrlmpi/zrlmpid/mpi"
)

var emptyStatus = mpi.Status{Source: mpi.AnySource, Tag: mpi.AnyTag}

// checkNoRequest checks that a handle does not refer to any request.
func (r *rank) checkNoRequest(request mpi.Request) {
	r.t.Helper()
	checkEqual(r, "status", must(request.Wait(r.ctx))(r), emptyStatus)
	st, done, err := request.Test()
	r.must(err)
	checkEqual(r, "done", done, true)
	checkEqual(r, "status", st, emptyStatus)
	i, st, err := mpi.Waitany(r.ctx, []mpi.Request{request, {}})
	r.must(err)
	checkEqual(r, "index", i, mpi.Undefined)
	checkEqual(r, "status", st, emptyStatus)
	r.checkClass(request.Cancel(), mpi.ErrRequest)
	r.checkClass(request.Free(), mpi.ErrRequest)
	r.checkClass(request.Start(), mpi.ErrRequest)
}

// staleHandles checks that a stale handle refers to no request, whatever happened to the request that it referred to.
func staleHandles(r *rank) {
	const tag, rounds = 4, 30
	other := 1 - r.Rank()
	r.checkNoRequest(mpi.Request{})
	var old []mpi.Request
	for i := range rounds {
		b, c := []int32{-1}, []int32{-1}
		q := must(mpi.Irecv(r.Comm, b, other, tag))(r)
		request := must(mpi.Isend(r.Comm, []int32{int32(i)}, other, tag))(r)
		same := q
		checkEqual(r, "comparison of copies", same == q, true)
		both := []mpi.Request{request, q, q} // q is waited for only once
		statuses := make([]mpi.Status, 3)
		r.must(mpi.Waitall(r.ctx, both, statuses))
		checkEqual(r, "tag", statuses[1].Tag, tag)
		checkEqual(r, "status", statuses[2], emptyStatus)
		old = append(old, same, request)
		// The old handles must not refer to later requests.
		later := must(mpi.Irecv(r.Comm, c, other, tag))(r)
		for _, q := range old {
			r.checkNoRequest(q)
		}
		r.syncWith(other) // the next message matches the receive
		request = must(mpi.Isend(r.Comm, []int32{int32(i)}, other, tag))(r)
		st := must(later.Wait(r.ctx))(r)
		checkEqual(r, "cancelled", st.Cancelled, false)
		checkEqual(r, "numbers", [2]int32{b[0], c[0]}, [2]int32{int32(i), int32(i)})
		must(request.Wait(r.ctx))(r)
		old = append(old, later, request)
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
		request := must(mpi.Irecv(r.Comm, b, 0, 1))(r) // no rank sends this
		handles <- request
		st := must(request.Wait(r.ctx))(r)
		checkEqual(r, "cancelled", st.Cancelled, true)
		request = must(mpi.Irecv(r.Comm, b, 0, 2))(r)
		handles <- mpi.Request{}
		r.must(mpi.Send(r.ctx, r.Comm, []int32{int32(i)}, 0, 2))
		st = must(request.Wait(r.ctx))(r)
		checkEqual(r, "cancelled", st.Cancelled, false)
		checkEqual(r, "number", int(b[0]), i)
	}
	close(handles)
	r.must(<-failed)
}

// freedRequests checks that a freed request still receives the message that it matches.
func freedRequests(r *rank) {
	const tag, n = 6, 50
	other := 1 - r.Rank()
	for range n {
		q := must(mpi.Irecv(r.Comm, []int32{0}, other, tag))(r)
		r.must(q.Free())
		r.checkNoRequest(q)
	}
	again := must(mpi.RecvInit(r.Comm, []int32{0}, other, tag))(r)
	r.must(again.Start())
	r.must(again.Free())
	r.checkNoRequest(again)
	r.syncWith(other)
	for i := range n + 1 {
		q := must(mpi.Isend(r.Comm, []int32{int32(i)}, other, tag))(r)
		r.must(q.Free())
	}
	b := []int32{0}
	must(mpi.Sendrecv(r.ctx, r.Comm, []int32{n + 1}, other, tag, b, other, tag))(r)
	checkEqual(r, "number", b[0], n+1)
	for _, start := range []func(*mpi.Comm, []int32, int, int) (mpi.Request, error){
		mpi.SendInit[int32], mpi.RecvInit[int32], mpi.Irecv[int32],
	} {
		q := must(start(r.Comm, b, mpi.ProcNull, tag))(r)
		r.must(q.Free())
		r.checkNoRequest(q)
	}
}

// waitsOfMany tests the calls that wait for several requests. The requests complete one by one.
func waitsOfMany(r *rank) {
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
			requests = append(requests, must(mpi.Irecv(r.Comm, []int32{0}, other, tag+i))(r))
		}
		return requests
	}
	requests := post()
	for i := range n {
		r.notify(0, 0)
		k, st, err := mpi.Waitany(r.ctx, requests)
		r.must(err)
		checkEqual(r, "index", k, i)
		checkEqual(r, "tag", st.Tag, tag+i)
	}
	requests = post()
	indices := make([]int, 0, n)
	for i := range n {
		r.notify(0, 0)
		done := must(mpi.Waitsome(r.ctx, requests, indices, nil))(r)
		checkEqual(r, "ended", len(done), 1)
		checkEqual(r, "index", done[0], i)
		checkEqual(r, "memory", &done[0] == &indices[:1][0], true)
	}
}

package mpitest

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// persistent starts persistent requests of all modes many times.
func persistent(r *rank) {
	const rounds, n = 20, 500
	inits := []func(*mpi.Comm, []int32, int, int) (mpi.Request, error){
		mpi.SendInit[int32], mpi.SsendInit[int32], mpi.RsendInit[int32], mpi.BsendInit[int32],
	}
	var bufs [][]int32
	var requests []mpi.Request
	for i, init := range inits {
		b := make([]int32, n)
		bufs = append(bufs, b)
		if r.Rank() == 1 {
			requests = append(requests, must(mpi.RecvInit(r.Comm, b, 0, i))(r))
		} else {
			requests = append(requests, must(init(r.Comm, b, 1, i))(r))
		}
	}
	r.must(r.AttachBuffer(4 * n * rounds))
	for round := range rounds {
		if r.Rank() == 0 {
			for i, b := range bufs {
				copy(b, pattern(n, round*10+i))
			}
			r.await(1) // ensures that ready mode is valid
		}
		r.must(mpi.Startall(requests))
		r.checkClass(requests[0].Start(), mpi.ErrRequest)
		r.checkClass(mpi.Startall(requests[3:]), mpi.ErrRequest)
		if r.Rank() == 1 {
			r.notify(0, 0)
		}
		statuses := make([]mpi.Status, len(requests))
		r.must(mpi.Waitall(r.ctx, requests, statuses))
		if r.Rank() == 1 {
			for i, b := range bufs {
				checkEqual(r, "tag", statuses[i].Tag, i)
				r.checkPattern(b, n, round*10+i)
			}
		}
	}
	must(r.DetachBuffer(r.ctx))(r)
	q := must(mpi.Irecv(r.Comm, bufs[0], 1-r.Rank(), 99))(r)
	r.checkClass(q.Start(), mpi.ErrRequest)
	r.must(q.Cancel())
	must(q.Wait(r.ctx))(r)
	r.checkClass(q.Start(), mpi.ErrRequest)
	r.checkClass(mpi.Request{}.Start(), mpi.ErrRequest)
	r.checkClass(mpi.Request{}.Cancel(), mpi.ErrRequest)
}

// yield yields to other goroutines between two tests of requests. It returns false once the test's time limit has been
// reached.
func (r *rank) yield() bool {
	runtime.Gosched()
	return r.ctx.Err() == nil
}

const manyRequests = 200

// postManyRecvs posts many receives, one per tag, for messages that rank 0 sends in a different order.
func (r *rank) postManyRecvs() ([]mpi.Request, [][]int32) {
	if r.Rank() == 0 {
		random := rand.New(rand.NewPCG(3, 4))
		for _, i := range random.Perm(manyRequests) {
			r.must(mpi.Send(r.ctx, r.Comm, pattern(sizes[i%4], i), 1, i))
		}
		return nil, nil
	}
	requests, bufs := make([]mpi.Request, manyRequests), make([][]int32, manyRequests)
	for i := range requests {
		bufs[i] = make([]int32, sizes[i%4])
		requests[i] = must(mpi.Irecv(r.Comm, bufs[i], 0, i))(r)
	}
	return requests, bufs
}

func waitany(r *rank) {
	for _, call := range []func([]mpi.Request) (int, mpi.Status, error){
		func(q []mpi.Request) (int, mpi.Status, error) { return mpi.Waitany(r.ctx, q) },
		func(q []mpi.Request) (int, mpi.Status, error) {
			for r.yield() {
				if i, st, done, err := mpi.Testany(q); done {
					return i, st, err
				}
			}
			return mpi.Undefined, mpi.Status{}, r.ctx.Err()
		},
	} {
		requests, bufs := r.postManyRecvs()
		seen := make([]bool, len(requests))
		for range requests {
			i, st, err := call(requests)
			r.must(err)
			if i < 0 || seen[i] {
				r.fatalf("request %d was returned as done again", i)
			}
			seen[i] = true
			checkEqual(r, "tag", st.Tag, i)
			r.checkPattern(bufs[i], sizes[i%4], i)
		}
	}
}

func waitsome(r *rank) {
	indices := make([]int, 0, manyRequests/2) // too small for all
	for _, call := range []func([]mpi.Request, []mpi.Status) ([]int, error){
		func(q []mpi.Request, s []mpi.Status) ([]int, error) { return mpi.Waitsome(r.ctx, q, indices, s) },
		func(q []mpi.Request, s []mpi.Status) ([]int, error) {
			for r.yield() {
				if done, err := mpi.Testsome(q, indices, s); len(done) > 0 || err != nil {
					return done, err
				}
			}
			return nil, r.ctx.Err()
		},
	} {
		requests, bufs := r.postManyRecvs()
		statuses := make([]mpi.Status, len(requests))
		var seen []int
		for len(seen) < len(requests) {
			done := must(call(requests, statuses))(r)
			if len(done) == 0 {
				r.fatalf("%d of %d requests are left, and none is done", len(requests)-len(seen), len(requests))
			}
			for k, i := range done {
				checkEqual(r, "tag", statuses[k].Tag, i)
				r.checkPattern(bufs[i], sizes[i%4], i)
			}
			seen = append(seen, done...)
		}
		slices.Sort(seen)
		checkEqual(r, "different requests", len(slices.Compact(seen)), len(requests))
	}
}

// waitall checks that Waitall reports which requests failed.
func waitall(r *rank) {
	requests, bufs := r.postManyRecvs()
	statuses := make([]mpi.Status, len(requests))
	for done := false; !done && r.yield(); {
		var err error
		done, err = mpi.Testall(requests, statuses)
		r.must(err)
	}
	for i := range requests {
		checkEqual(r, "tag", statuses[i].Tag, i)
		r.checkPattern(bufs[i], sizes[i%4], i)
	}

	const n = 8
	if r.Rank() == 0 {
		for i := range n {
			r.must(mpi.Send(r.ctx, r.Comm, pattern(1+i%2, i), 1, i))
		}
		return
	}
	var short []mpi.Request
	for i := range n {
		short = append(short, must(mpi.Irecv(r.Comm, make([]int32, 1), 0, i))(r))
	}
	r.checkClass(mpi.Waitall(r.ctx, short, statuses[:n-1]), mpi.ErrArg)
	err := mpi.Waitall(r.ctx, short, statuses)
	checkEqual(r, "class", mpi.ClassOf(err), mpi.ErrInStatus)
	r.checkClass(err, mpi.ErrTruncate) // err must have the class of an error in it
	for i := range n {
		want := mpi.Success
		if i%2 == 1 {
			want = mpi.ErrTruncate
		}
		checkEqual(r, "class", mpi.ClassOf(statuses[i].Err), want)
		checkEqual(r, "tag", statuses[i].Tag, i)
	}
	r.must(mpi.Waitall(r.ctx, short, statuses)) // all requests are now inactive
}

// waitDeadline checks that calls that wait for several requests cancel all of them when the context is done.
func waitDeadline(r *rank) {
	other := 1 - r.Rank()
	post := func(n int) []mpi.Request {
		var requests []mpi.Request
		for i := range n {
			requests = append(requests, must(mpi.Irecv(r.Comm, []int32{0}, other, i))(r))
		}
		return requests
	}
	ctx, stop := r.shortContext()
	defer stop()
	requests := post(5)
	for range requests {
		i, _, err := mpi.Waitany(ctx, requests)
		if i < 0 {
			r.fatalf("Waitany gave index %d and %v", i, err)
		}
		r.checkDeadline(err)
	}
	last := []mpi.Request{{}, post(1)[0], requests[0]} // only one of them is active
	i, _, err := mpi.Waitany(ctx, last)
	checkEqual(r, "index", i, 1)
	r.checkDeadline(err)
	i, _, err = mpi.Waitany(ctx, requests)
	r.must(err)
	checkEqual(r, "index", i, mpi.Undefined)

	statuses := make([]mpi.Status, len(requests))
	done, err := mpi.Waitsome(ctx, post(5), nil, statuses)
	checkEqual(r, "requests that ended", len(done), len(statuses))
	checkEqual(r, "class", mpi.ClassOf(err), mpi.ErrInStatus)
	for _, st := range statuses {
		r.checkDeadline(st.Err)
	}
	err = mpi.Waitall(ctx, post(5), nil)
	checkEqual(r, "class", mpi.ClassOf(err), mpi.ErrInStatus)
	var e *mpi.Error
	if !errors.As(errors.Unwrap(err), &e) {
		r.fatalf("%v has no error of a request in it", err)
	}
	r.checkDeadline(e)
	r.syncWith(other)
	// No cancelled receive may get this message.
	must(mpi.Sendrecv(r.ctx, r.Comm, []int32{1}, other, 0, []int32{0}, other, 0))(r)
}

// inactive checks that calls that wait for inactive requests return immediately.
func inactive(r *rank) {
	empty := mpi.Status{Source: mpi.AnySource, Tag: mpi.AnyTag}
	request := must(mpi.Isend(r.Comm, []int32{1}, mpi.ProcNull, 0))(r)
	must(request.Wait(r.ctx))(r)
	persistent := must(mpi.RecvInit(r.Comm, []int32{0}, 0, 0))(r)
	requests := []mpi.Request{{}, request, persistent}
	statuses := make([]mpi.Status, 3)
	for _, q := range requests {
		checkEqual(r, "status", must(q.Wait(r.ctx))(r), empty)
		st, done, err := q.Test()
		r.must(err)
		checkEqual(r, "done", done, true)
		checkEqual(r, "status", st, empty)
	}
	r.checkClass(request.Cancel(), mpi.ErrRequest)
	r.must(mpi.Waitall(r.ctx, requests, statuses))
	checkEqual(r, "status", statuses[2], empty)
	i, st, err := mpi.Waitany(r.ctx, requests)
	r.must(err)
	checkEqual(r, "index", i, mpi.Undefined)
	checkEqual(r, "status", st, empty)
	i, _, done, err := mpi.Testany(requests)
	r.must(err)
	checkEqual(r, "index", i, mpi.Undefined)
	checkEqual(r, "done", done, true)
	all, err := mpi.Testall(requests, nil)
	r.must(err)
	checkEqual(r, "all", all, true)
	checkEqual(r, "ended", len(must(mpi.Waitsome(r.ctx, requests, nil, nil))(r)), 0)
	checkEqual(r, "ended", len(must(mpi.Testsome(requests, nil, nil))(r)), 0)
}

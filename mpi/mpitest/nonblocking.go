package mpitest

import (
	"runtime"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// startCollectives starts each collective once. It returns the requests, and a function that checks the results.
func startCollectives(r *rank, comm *mpi.Comm) (requests []mpi.Request, check func()) {
	const n = 40
	ranks, me := comm.Size(), comm.Rank()
	add := func(a, b int32) int32 { return a + b }
	own := func() []int32 { return contribution(value[int32], me, n) }
	var all, mine, scattered []int32
	for rank := range ranks {
		all = append(all, contribution(value[int32], rank, n)...)
		mine = append(mine, contribution(value[int32], rank, n*ranks)[me*n:][:n]...)
	}
	scattered = contribution(value[int32], 0, n*ranks)
	sum := reduceSerially(value[int32], add, ranks, n)
	long := reduceSerially(value[int32], add, ranks, n*ranks)
	counts := make([]int, ranks)
	for i := range counts {
		counts[i] = n
	}
	var checks []func()
	start := func(what string, q mpi.Request, err error, have, want []int32) {
		r.t.Helper()
		r.must(err)
		requests = append(requests, q)
		checks = append(checks, func() { checkSlice(r, what, have, want) })
	}
	new := func(n int) []int32 { return make([]int32, n) }

	request, err := mpi.Ibarrier(comm)
	start("Ibarrier", request, err, nil, nil)
	b := new(n)
	if me == 0 {
		copy(b, own())
	}
	request, err = mpi.Ibcast(comm, b, 0)
	start("Ibcast", request, err, b, all[:n])
	b = new(n)
	request, err = mpi.Iallreduce(comm, own(), b, mpi.Sum)
	start("Iallreduce", request, err, b, sum)
	b = own()
	request, err = mpi.Ireduce(comm, b, b, mpi.Sum, ranks-1)
	if me == ranks-1 {
		start("Ireduce", request, err, b, sum)
	} else {
		start("Ireduce", request, err, b, own())
	}
	b = new(n)
	request, err = mpi.Iscan(comm, own(), b, mpi.Sum)
	start("Iscan", request, err, b, reduceSerially(value[int32], add, me+1, n))
	b = new(n)
	request, err = mpi.Iexscan(comm, own(), b, mpi.Sum)
	if me > 0 {
		start("Iexscan", request, err, b, reduceSerially(value[int32], add, me, n))
	} else {
		start("Iexscan", request, err, nil, nil)
	}
	b = new(n * ranks)
	request, err = mpi.Iallgather(comm, own(), b)
	start("Iallgather", request, err, b, all)
	b = new(n * ranks)
	request, err = mpi.Iallgatherv(comm, own(), b, counts, nil)
	start("Iallgatherv", request, err, b, all)
	b = new(n * ranks)
	request, err = mpi.Ialltoall(comm, contribution(value[int32], me, n*ranks), b)
	start("Ialltoall", request, err, b, mine)
	b = new(n * ranks)
	request, err = mpi.Ialltoallv(comm, contribution(value[int32], me, n*ranks), counts, nil, b, counts, nil)
	start("Ialltoallv", request, err, b, mine)
	b = new(n)
	request, err = mpi.IreduceScatterBlock(comm, contribution(value[int32], me, n*ranks), b, mpi.Sum)
	start("IreduceScatterBlock", request, err, b, long[me*n:][:n])
	b = new(n)
	request, err = mpi.IreduceScatter(comm, contribution(value[int32], me, n*ranks), b, counts, mpi.Sum)
	start("IreduceScatter", request, err, b, long[me*n:][:n])
	var whole []int32
	if me == 0 {
		whole = new(n * ranks)
	}
	request, err = mpi.Igather(comm, own(), whole, 0)
	start("Igather", request, err, whole, all[:len(whole)])
	if me == 0 {
		whole = new(n * ranks)
	}
	request, err = mpi.Igatherv(comm, own(), whole, counts, nil, 0)
	start("Igatherv", request, err, whole, all[:len(whole)])
	if me == 0 {
		whole = contribution(value[int32], 0, n*ranks)
	}
	b = new(n)
	request, err = mpi.Iscatter(comm, whole, b, 0)
	start("Iscatter", request, err, b, scattered[me*n:][:n])
	b = new(n)
	request, err = mpi.Iscatterv(comm, whole, b, counts, nil, 0)
	start("Iscatterv", request, err, b, scattered[me*n:][:n])
	for i := range counts {
		counts[i] = -1 // the caller owns counts again
	}
	return requests, func() {
		for _, f := range checks {
			f()
		}
	}
}

// overlapping runs all collectives concurrently in two communicators. The ranks wait for them in different ways and in
// different orders.
func overlapping(r *rank) {
	twin := must(r.Dup(r.ctx))(r)
	for round := range 4 {
		a, checkA := startCollectives(r, r.Comm)
		b, checkB := startCollectives(r, twin)
		all := append(a, b...)
		switch (r.Rank() + round) % 4 {
		case 0:
			statuses := make([]mpi.Status, len(all))
			r.must(mpi.Waitall(r.ctx, all, statuses))
			checkEqual(r, "status", statuses[3], mpi.Status{Source: mpi.AnySource, Tag: mpi.AnyTag})
		case 1:
			for i := range all {
				must(all[len(all)-1-i].Wait(r.ctx))(r)
			}
		case 2:
			for range all {
				i, _, err := mpi.Waitany(r.ctx, all)
				r.must(err)
				if i == mpi.Undefined {
					r.fatalf("there is nothing to wait for")
				}
			}
		default:
			for done := false; !done && r.yield(); {
				var err error
				done, err = mpi.Testall(all, nil)
				r.must(err)
			}
		}
		checkA()
		checkB()
	}
}

// backgroundProgress checks that a rank's collectives make progress even while the rank waits for something else. The
// other rank ends that wait only after it has completed the collectives.
func backgroundProgress(r *rank) {
	other := 1 - r.Rank()
	highest := mpi.OpOf(func(in, inout []int64) {
		for i := range in {
			inout[i] = max(in[i], inout[i])
		}
	}, true)
	begin := func() ([]mpi.Request, []int64) {
		b := []int64{int64(r.Rank()), 7, int64(-r.Rank())}
		return []mpi.Request{
			must(mpi.Iallreduce(r.Comm, b, b, highest))(r),
			must(mpi.Ibarrier(r.Comm, mpi.WithAlgorithm("toggle")))(r), // rank 0 must answer the other rank
		}, b
	}
	one := []int32{1}
	const tag = 4
	for _, w := range []struct {
		name        string
		waits, then func()
	}{
		{"Recv", func() { must(mpi.Recv(r.ctx, r.Comm, one, other, tag))(r) },
			func() { r.must(mpi.Send(r.ctx, r.Comm, one, other, tag)) }},
		{"Send", func() { r.must(mpi.Ssend(r.ctx, r.Comm, one, other, tag)) },
			func() { must(mpi.Recv(r.ctx, r.Comm, one, other, tag))(r) }},
		{"Sendrecv", func() { r.syncWith(other) }, func() { r.syncWith(other) }},
		{"Probe", func() {
			must(mpi.Probe(r.ctx, r.Comm, other, tag))(r)
			must(mpi.Recv(r.ctx, r.Comm, one, other, tag))(r)
		}, func() { r.must(mpi.Send(r.ctx, r.Comm, one, other, tag)) }},
		{"Iprobe", func() {
			for r.yield() {
				if _, found, err := mpi.Iprobe(r.Comm, other, tag); found || err != nil {
					r.must(err)
					break
				}
			}
			must(mpi.Recv(r.ctx, r.Comm, one, other, tag))(r)
		}, func() { r.must(mpi.Send(r.ctx, r.Comm, one, other, tag)) }},
		{"Test", func() {
			q := must(mpi.Irecv(r.Comm, one, other, tag))(r)
			for r.yield() {
				if _, done, err := q.Test(); done {
					r.must(err)
					break
				}
			}
		}, func() { r.must(mpi.Send(r.ctx, r.Comm, one, other, tag)) }},
		{"Waitany", func() {
			_, _, err := mpi.Waitany(r.ctx, []mpi.Request{{}, must(mpi.Irecv(r.Comm, one, other, tag))(r)})
			r.must(err)
		}, func() { r.must(mpi.Send(r.ctx, r.Comm, one, other, tag)) }},
		{"Testany", func() {
			requests := []mpi.Request{must(mpi.Irecv(r.Comm, one, other, tag))(r)}
			for r.yield() {
				if _, _, done, err := mpi.Testany(requests); done {
					r.must(err)
					break
				}
			}
		}, func() { r.must(mpi.Send(r.ctx, r.Comm, one, other, tag)) }},
		{"Dup", func() { must(r.Dup(r.ctx))(r) }, func() { must(r.Dup(r.ctx))(r) }},
		{"Barrier", func() { r.must(mpi.Barrier(r.ctx, r.Comm)) }, func() { r.must(mpi.Barrier(r.ctx, r.Comm)) }},
		{"Wait", func() { must(must(mpi.Ibarrier(r.Comm))(r).Wait(r.ctx))(r) },
			func() { r.must(mpi.Barrier(r.ctx, r.Comm)) }},
		{"DetachBuffer", func() {
			r.must(r.AttachBuffer(1 << 20))
			r.must(mpi.Bsend(r.Comm, make([]int32, 1<<17), other, tag))
			must(r.DetachBuffer(r.ctx))(r)
		}, func() { must(mpi.Recv(r.ctx, r.Comm, make([]int32, 1<<17), other, tag))(r) }},
	} {
		q, b := begin()
		if r.Rank() == 0 {
			w.waits()
			r.must(mpi.Waitall(r.ctx, q, nil))
		} else {
			r.must(mpi.Waitall(r.ctx, q, nil))
			w.then()
		}
		checkSlice(r, "the sum computed while rank 0 waits in "+w.name, b, []int64{1, 7, 0})
		r.syncWith(other)
	}
}

// sharedWaits makes several goroutines of a rank wait for different operations at the same time.
func sharedWaits(r *rank) {
	const rounds = 50
	other := 1 - r.Rank()
	for round := range rounds {
		var sums [3][]int32
		var calls []mpi.Request
		for i := range sums {
			sums[i] = []int32{int32(i), 1}
			calls = append(calls, must(mpi.Iallreduce(r.Comm, sums[i], sums[i], mpi.Sum))(r))
		}
		failed := make(chan error, 4)
		for i, request := range calls {
			go func() {
				if (round+i)%2 == 0 {
					_, _, err := mpi.Waitany(r.ctx, []mpi.Request{request})
					failed <- err
					return
				}
				_, err := request.Wait(r.ctx)
				failed <- err
			}()
		}
		go func() {
			_, err := mpi.Sendrecv(r.ctx, r.Comm, []int32{1}, other, 9, []int32{0}, other, 9)
			failed <- err
		}()
		for range cap(failed) {
			r.must(<-failed)
		}
		for i, sum := range sums {
			checkSlice(r, "the sum", sum, []int32{2 * int32(i), 2})
		}
		runtime.Gosched()
	}
}

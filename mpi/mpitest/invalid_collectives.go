package mpitest

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpi"
)

// invalidCollectives checks the error classes for invalid arguments of collectives. It also checks that nothing is
// sent, so that later calls are not affected.
func invalidCollectives(r *rank) {
	comm, ctx := r.Comm, r.ctx
	me, other := r.Rank(), 1-r.Rank()
	i4, i8, f4 := make([]int32, 4), make([]int32, 8), make([]float32, 4)
	two := []int{2, 2}
	for _, root := range []int{-1, 2, mpi.AnySource, mpi.ProcNull, mpi.Undefined, math.MaxInt} {
		r.checkClass(mpi.Bcast(ctx, comm, i4, root), mpi.ErrRoot)
		r.checkClass(mpi.Reduce(ctx, comm, i4, i8[:4], mpi.Sum, root), mpi.ErrRoot)
		r.checkClass(mpi.Gather(ctx, comm, i4, i8, root), mpi.ErrRoot)
		r.checkClass(mpi.Gatherv(ctx, comm, i4, i8, two, nil, root), mpi.ErrRoot)
		r.checkClass(mpi.Scatter(ctx, comm, i8, i4, root), mpi.ErrRoot)
		_, err := mpi.Iscatterv(comm, i8, i4, two, nil, root)
		r.checkClass(err, mpi.ErrRoot)
	}
	for what, err := range map[string]error{
		"Reduce": mpi.Reduce(ctx, comm, i4, i8, mpi.Sum, me), "Allreduce": mpi.Allreduce(ctx, comm, i4, i8, mpi.Sum),
		"Scan":   mpi.Scan(ctx, comm, i8, i4, mpi.Sum),
		"Exscan": mpi.Exscan(ctx, comm, i4, nil, mpi.Sum), "Gather": mpi.Gather(ctx, comm, i4, i4, me),
		"Scatter":   mpi.Scatter(ctx, comm, i8[:7], i4, me),
		"Allgather": mpi.Allgather(ctx, comm, i4, i8[:7]), "Alltoall": mpi.Alltoall(ctx, comm, i4[:3], i8[:3]),
		"Alltoall's lengths":    mpi.Alltoall(ctx, comm, i4, i8),
		"ReduceScatter's sum":   mpi.ReduceScatter(ctx, comm, i8[:5], i4[:2], two, mpi.Sum),
		"ReduceScatter's block": mpi.ReduceScatter(ctx, comm, i4, i8[:3], two, mpi.Sum),
		"ReduceScatterBlock":    mpi.ReduceScatterBlock(ctx, comm, i8, i4[:3], mpi.Sum),
		"number of counts":      mpi.Allgatherv(ctx, comm, i4, i8, []int{4}, nil),
		"no counts":             mpi.Allgatherv(ctx, comm, i4, i8, nil, nil),
		"negative count":        mpi.Allgatherv(ctx, comm, i4, i8, []int{4, -1}, nil),
		"own count":             mpi.Allgatherv(ctx, comm, i4, i8, []int{3, 3}, nil),
		"blocks beyond":         mpi.Gatherv(ctx, comm, i4, i8, []int{4, 4}, []int{0, 5}, me),
		"far beyond":            mpi.Gatherv(ctx, comm, i4, i8, []int{4, 4}, []int{0, math.MaxInt}, me),
		"more than there is":    mpi.Gatherv(ctx, comm, i4, i8, []int{4, math.MaxInt}, []int{0, 4}, me),
		"own block":             mpi.Scatterv(ctx, comm, i8, i4, two, nil, me),
		"to itself": mpi.Alltoallv(ctx, comm, i8, []int{4, 4}, nil, make([]int32, 5),
			[]int{4 - me, 3 + me}[:2], nil), "in place": mpi.Alltoallv(ctx, comm, i4, []int{1, 2}, nil, i4, two, nil),
		"places in place": mpi.Alltoallv(ctx, comm, i4, two, []int{2, 0}, i4, two, nil),
		"no sendcounts":   mpi.Alltoallv(ctx, comm, i4, nil, nil, i8, two, nil),
	} {
		if !errors.Is(err, mpi.ErrCount) {
			r.fatalf("%s: %v", what, err)
		}
	}
	for what, err := range map[string]error{
		"displacement":                          mpi.Gatherv(ctx, comm, i4, i8, []int{4, 4}, []int{0, -1}, me),
		"displacements":                         mpi.Gatherv(ctx, comm, i4, i8, []int{4, 4}, []int{0}, me),
		"overlap":                               mpi.Allgatherv(ctx, comm, i4, i8, []int{4, 4}, []int{3, 0}),
		"algorithm":                             mpi.Bcast(ctx, comm, i4, 0, mpi.WithAlgorithm("telepathy")),
		"algorithm of another":                  mpi.Barrier(ctx, comm, mpi.WithAlgorithm("flat")),
		"segment":                               mpi.Bcast(ctx, comm, i4, 0, mpi.WithSegment(6)),
		"no segment":                            mpi.Bcast(ctx, comm, i4, 0, mpi.WithSegment(0)),
		"segments of an algorithm without them": mpi.Bcast(ctx, comm, i4, 0, mpi.WithAlgorithm("binomial"), mpi.WithSegment(8)),
		"nothing to cut":                        mpi.Barrier(ctx, comm, mpi.WithSegment(8)),
		"commutative": mpi.Allreduce(ctx, comm, i4, i8[:4], mpi.OpOf(func(_, _ []int32) {}, false),
			mpi.WithAlgorithm("ring")),
	} {
		if !errors.Is(err, mpi.ErrArg) {
			r.fatalf("%s: %v", what, err)
		}
	}
	for what, err := range map[string]error{
		"no operation":       mpi.Allreduce(ctx, comm, i4, i8[:4], mpi.Op{}),
		"no function":        mpi.Allreduce(ctx, comm, i4, i8[:4], mpi.OpOf[int32](nil, true)),
		"bits of floats":     mpi.Allreduce(ctx, comm, f4, make([]float32, 4), mpi.BAnd),
		"logic of complex":   mpi.Scan(ctx, comm, []complex64{1}, []complex64{1}, mpi.LOr),
		"place of a number":  mpi.Reduce(ctx, comm, i4, i8[:4], mpi.MaxLoc, 0),
		"sum of places":      mpi.Reduce(ctx, comm, []mpi.Int32Loc{{}}, []mpi.Int32Loc{{}}, mpi.Sum, 0),
		"another type":       mpi.Exscan(ctx, comm, f4, f4, mpi.OpOf(func(_, _ []int32) {}, true)),
		"maximum of complex": mpi.ReduceScatterBlock(ctx, comm, []complex128{1, 2}, []complex128{1}, mpi.Max),
	} {
		if !errors.Is(err, mpi.ErrOp) {
			r.fatalf("%s: %v", what, err)
		}
	}
	for what, err := range map[string]error{
		"Allreduce": mpi.Allreduce(ctx, comm, i8[:4], i8[1:5], mpi.Sum),
		"Gather":    mpi.Gather(ctx, comm, i8[4*other:][:4], i8, me),
		"Scatter":   mpi.Scatter(ctx, comm, i8, i8[4*other:][:4], me),
		"Allgather": mpi.Allgather(ctx, comm, i8[1:5], i8), "Alltoall": mpi.Alltoall(ctx, comm, i8[:6], i8[2:]),
		"Reduce":             mpi.Reduce(ctx, comm, i8[:4], i8[3:7], mpi.Sum, me),
		"ReduceScatterBlock": mpi.ReduceScatterBlock(ctx, comm, i8, i8[4:], mpi.Sum),
		"Alltoallv":          mpi.Alltoallv(ctx, comm, i8[:4], two, nil, i8[2:], two, nil),
		"Scatterv":           mpi.Scatterv(ctx, comm, i8, i8[4*other:][:4], []int{4, 4}, nil, me),
	} {
		if !errors.Is(err, mpi.ErrBuffer) {
			r.fatalf("%s: %v", what, err)
		}
	}
	r.checkClass(mpi.Barrier(ctx, nil), mpi.ErrComm)
	_, err := mpi.Ibcast(nil, i4, 0)
	r.checkClass(err, mpi.ErrComm)
	gone := must(r.Dup(ctx))(r)
	r.must(gone.Free())
	r.checkClass(mpi.Allreduce(ctx, gone, i4, i4, mpi.Sum), mpi.ErrComm)

	sum := []int32{int32(me) + 1}
	r.must(mpi.Allreduce(ctx, comm, sum, sum, mpi.Sum))
	checkEqual(r, "the sum", sum[0], 3)
}

// collectiveDeadline checks the error of a call whose context is done. The error must name either the call and
// the ranks that wait for each other, or the rank that abandoned the call first. Other calls must still work.
func collectiveDeadline(r *rank) {
	const n = 3
	comm := must(r.Dup(r.ctx))(r)
	if r.Rank() != 1 {
		for _, call := range []struct {
			name string
			f    func(ctx context.Context) error
		}{
			{"Bcast", func(ctx context.Context) error { return mpi.Bcast(ctx, comm, make([]int32, n), 1) }},
			{"Allreduce", func(ctx context.Context) error {
				return mpi.Allreduce(ctx, comm, make([]int32, n), make([]int32, n), mpi.Sum)
			}},
			{"Igather", func(ctx context.Context) error {
				q := must(mpi.Igather(comm, make([]int32, n), make([]int32, n*r.Size()), r.Rank()))(r)
				_, err := q.Wait(ctx)
				return err
			}},
			{"Ibarrier", func(ctx context.Context) error {
				q := must(mpi.Ibarrier(comm))(r)
				_, _, err := mpi.Waitany(ctx, []mpi.Request{q})
				return err
			}},
		} {
			ctx, stop := r.shortContext()
			err := call.f(ctx)
			stop()
			if errors.Is(err, collective.ErrCallFailed) {
				r.checkError(err, mpi.ErrOther, call.name, fmt.Sprintf("rank %d has abandoned", r.Size()-1-r.Rank()))
				continue
			}
			r.checkError(err, mpi.ErrOther, call.name, ": rank ", context.DeadlineExceeded.Error())
			if !errors.Is(err, context.DeadlineExceeded) {
				r.fatalf("%v is not a passed deadline", err)
			}
			var wait *mpe.WaitError
			if !errors.As(err, &wait) {
				r.fatalf("%v does not say who waits for whom", err)
			}
			checkEqual(r, "the waiting rank", int(wait.Local), r.Rank())
		}
	}
	sum := []int32{1}
	r.must(mpi.Allreduce(r.ctx, r.Comm, sum, sum, mpi.Sum))
	checkEqual(r, "the sum", int(sum[0]), r.Size())
}

// collectiveRequests checks that pending collective requests cannot be cancelled, freed or started again.
func collectiveRequests(r *rank) {
	b := []int32{int32(r.Rank())}
	request := must(mpi.Ibcast(r.Comm, b, 1))(r)
	r.checkError(request.Cancel(), mpi.ErrRequest, "Ibcast", "wait for it")
	r.checkError(request.Free(), mpi.ErrRequest, "Ibcast", "wait for it")
	r.checkClass(request.Start(), mpi.ErrRequest)
	st := must(request.Wait(r.ctx))(r)
	checkEqual(r, "status", st, mpi.Status{Source: mpi.AnySource, Tag: mpi.AnyTag})
	checkEqual(r, "number", b[0], 1)
	r.checkClass(request.Cancel(), mpi.ErrRequest)
	r.checkClass(request.Free(), mpi.ErrRequest)
	checkEqual(r, "status", must(request.Wait(r.ctx))(r), st)
}

package mpitest

import (
	"context"
	"math"
	"slices"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// sizes lists message lengths as counts of int32, both below and above the eager limits of devices.
var sizes = []int{0, 1, 2, 347, 4097, 100_003}

type number interface {
	mpi.Number
	comparable
}

// modes sends messages of all sizes in all send modes.
func modes(r *rank) {
	blocking := []func(b []int32, tag int) error{
		func(b []int32, tag int) error { return mpi.Send(r.ctx, r.Comm, b, 1, tag) },
		func(b []int32, tag int) error { return mpi.Ssend(r.ctx, r.Comm, b, 1, tag) },
		func(b []int32, tag int) error { return mpi.Rsend(r.ctx, r.Comm, b, 1, tag) },
		func(b []int32, tag int) error { return mpi.Bsend(r.Comm, b, 1, tag) },
	}
	starting := []func(c *mpi.Comm, b []int32, dest, tag int) (mpi.Request, error){
		mpi.Isend[int32], mpi.Issend[int32], mpi.Irsend[int32], mpi.Ibsend[int32],
	}
	for _, start := range starting {
		blocking = append(blocking, func(b []int32, tag int) error {
			q, err := start(r.Comm, b, 1, tag)
			if err != nil {
				return err
			}
			st, err := q.Wait(r.ctx)
			if st.Cancelled || st.Bytes != 0 {
				r.fatalf("the status of a send is %+v", st)
			}
			return err
		})
	}
	r.must(r.AttachBuffer(1 << 20))
	for mode, send := range blocking {
		for i, n := range sizes {
			tag := 1 + mode*len(sizes) + i
			if r.Rank() == 0 {
				r.await(1) // ensures that ready mode is valid
				r.must(send(pattern(n, tag), tag))
				continue
			}
			b := make([]int32, n+3)
			q := must(mpi.Irecv(r.Comm, b, 0, tag))(r)
			r.notify(0, 0)
			st := must(q.Wait(r.ctx))(r)
			checkEqual(r, "source", st.Source, 0)
			checkEqual(r, "tag", st.Tag, tag)
			checkEqual(r, "count", mpi.Count[int32](st), n)
			r.checkPattern(b, n, tag)
		}
	}
	checkEqual(r, "size of the buffer", must(r.DetachBuffer(r.ctx))(r), 1<<20)
}

type celsius float32

// types sends numbers of every type.
func types(r *rank) {
	exchange(r, []int8{math.MinInt8, -1, 127})
	exchange(r, []int16{math.MinInt16, -1, math.MaxInt16})
	exchange(r, []int32{math.MinInt32, -1, math.MaxInt32})
	exchange(r, []int64{math.MinInt64, -1, math.MaxInt64})
	exchange(r, []uint8{0, 1, 255})
	exchange(r, []uint16{1, 256, math.MaxUint16})
	exchange(r, []uint32{1, 1 << 24, math.MaxUint32})
	exchange(r, []uint64{1, 1 << 56, math.MaxUint64})
	exchange(r, []float32{-0.5, math.MaxFloat32, float32(math.Inf(1))})
	exchange(r, []float64{-0.5, math.MaxFloat64, math.SmallestNonzeroFloat64})
	exchange(r, []complex64{1 + 2i, -3i})
	exchange(r, []complex128{1 + 2i, -3i})
	exchange(r, []celsius{-273.15, 100})
}

func exchange[T number](r *rank, want []T) {
	r.t.Helper()
	if r.Rank() == 0 {
		r.must(mpi.Send(r.ctx, r.Comm, want, 1, 0))
		return
	}
	b := make([]T, len(want)+1)
	st := must(mpi.Recv(r.ctx, r.Comm, b, 0, 0))(r)
	checkEqual(r, "count", mpi.Count[T](st), len(want))
	if !slices.Equal(b[:len(want)], want) {
		r.fatalf("%T %v arrived as %v", want, want, b)
	}
}

// synchronous checks that Ssend completes only after a receive has matched.
func synchronous(r *rank) {
	const tag = 7
	for _, n := range sizes[1:] {
		if r.Rank() == 1 {
			r.notify(0, 0) // nothing has been posted yet
			r.await(0)
			b := make([]int32, n)
			must(mpi.Recv(r.ctx, r.Comm, b, 0, tag))(r)
			r.checkPattern(b, n, n)
			continue
		}
		request := must(mpi.Issend(r.Comm, pattern(n, n), 1, tag))(r)
		r.await(1)
		if _, done, err := request.Test(); done {
			r.fatalf("Issend returned %v before a receive was posted", err)
		}
		r.notify(1, 0)
		must(request.Wait(r.ctx))(r)
	}
}

// buffered checks that Bsend completes at once if the message fits into the buffer.
func buffered(r *rank) {
	const n, tag = 300_000, 7 // larger than any eager limit
	if r.Rank() == 1 {
		r.await(0)
		for i := range 2 {
			b := make([]int32, n)
			must(mpi.Recv(r.ctx, r.Comm, b, 0, tag))(r)
			r.checkPattern(b, n, i)
		}
		return
	}
	r.checkClass(mpi.Bsend(r.Comm, pattern(n, 0), 1, tag), mpi.ErrBuffer)
	_, err := r.DetachBuffer(r.ctx)
	r.checkClass(err, mpi.ErrBuffer)
	r.checkClass(r.AttachBuffer(-1), mpi.ErrArg)
	r.must(r.AttachBuffer(2*4*n + 4))
	r.checkClass(r.AttachBuffer(1), mpi.ErrBuffer)
	for i := range 2 {
		b := pattern(n, i)
		r.must(mpi.Bsend(r.Comm, b, 1, tag))
		clear(b) // the caller owns b again
	}
	r.checkClass(mpi.Bsend(r.Comm, pattern(n, 2), 1, tag), mpi.ErrBuffer)
	_, err = mpi.Ibsend(r.Comm, pattern(n, 2), 1, tag)
	r.checkClass(err, mpi.ErrBuffer)
	ctx, stop := r.shortContext()
	defer stop()
	_, err = r.DetachBuffer(ctx) // does not cancel anything
	r.checkError(err, mpi.ErrPending, "2 buffered messages", "rank 1", context.DeadlineExceeded.Error())
	r.notify(1, 0)
	checkEqual(r, "size of the buffer", must(r.DetachBuffer(r.ctx))(r), 2*4*n+4)
	r.must(r.AttachBuffer(0))
	r.must(mpi.Bsend(r.Comm, []int32{}, mpi.ProcNull, tag))
	r.checkClass(mpi.Bsend(r.Comm, []int32{1}, 1, tag), mpi.ErrBuffer)
	checkEqual(r, "size of the buffer", must(r.DetachBuffer(r.ctx))(r), 0)
}

// sendrecv shifts large messages along a ring.
func sendrecv(r *rank) {
	right, left := (r.Rank()+1)%r.Size(), (r.Rank()+r.Size()-1)%r.Size()
	for _, n := range sizes {
		b := make([]int32, n)
		st := must(mpi.Sendrecv(r.ctx, r.Comm, pattern(n, r.Rank()), right, 3, b, left, 3))(r)
		checkEqual(r, "source", st.Source, left)
		checkEqual(r, "count", mpi.Count[int32](st), n)
		r.checkPattern(b, n, left)

		b = pattern(n, r.Rank())
		st = must(mpi.SendrecvReplace(r.ctx, r.Comm, b, right, 4, mpi.AnySource, mpi.AnyTag))(r)
		checkEqual(r, "source", st.Source, left)
		r.checkPattern(b, n, left)
	}
	// A chain with two ends.
	if r.Rank() == 0 {
		left = mpi.ProcNull
	}
	if r.Rank() == r.Size()-1 {
		right = mpi.ProcNull
	}
	b := []int64{-1}
	st := must(mpi.Sendrecv(r.ctx, r.Comm, []int32{int32(r.Rank()), 0}, right, 5, b, left, 5))(r)
	checkEqual(r, "source", st.Source, left)
	checkEqual(r, "number", b[0], int64(r.Rank()-1))
	_, err := mpi.Sendrecv(r.ctx, r.Comm, b, r.Size(), 0, b, mpi.ProcNull, 0)
	r.checkClass(err, mpi.ErrRank)
}

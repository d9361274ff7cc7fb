package mpitest

import (
	"context"
	"errors"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// limitedCollectives checks that all collectives work on whole words, in a world whose peers support neither
// tags nor communicators.
func limitedCollectives(r *rank) {
	moves(r, r.Comm, value[int32])
	moves(r, r.Comm, value[int32], long)
	moves(r, r.Comm, value[float32])
	moves(r, r.Comm, location)
	vector(r, r.Comm, value[int64])
	reduces(r, r.Comm, value[float32], ofOrdered[float32]())
	reduces(r, r.Comm, value[complex64], ofNumbers[complex64]())
	userFunctions(r, r.Comm)
	algorithms(r)
	r.hello()
}

// collectiveWords checks that a length that is not a whole number of words is rejected if a peer's wire cannot
// carry it.
func collectiveWords(r *rank) {
	short := make([]int16, 3)
	r.says(mpi.Bcast(r.ctx, r.Comm, short, 0), mpi.ErrCount, "6 bytes", "4 bytes", "rank ", "profile")
	r.class(mpi.Gather(r.ctx, r.Comm, short, make([]int16, 9), 0), mpi.ErrCount)
	r.class(mpi.Reduce(r.ctx, r.Comm, short, short, mpi.Sum, 0), mpi.ErrCount)
	_, err := mpi.Iscatter(r.Comm, make([]uint8, 15), make([]uint8, 5), 0)
	r.class(err, mpi.ErrCount)
	b := []int16{7, int16(r.Rank())}
	r.must(mpi.Bcast(r.ctx, r.Comm, b, 0))
	same(r, "Bcast", b, []int16{7, 0})
	moves(r, r.Comm, func(rank, i int) uint8 { return uint8(rank + i/4) }, 0, 4, 8, 4000)
	r.hello()
}

// oneAtATime checks that if messages match by their order alone, a call is rejected while another one is in
// progress.
func oneAtATime(r *rank) {
	q := got(mpi.Ibarrier(r.Comm))(r)
	b := []int32{5}
	r.says(mpi.Bcast(r.ctx, r.Comm, b, 0), mpi.ErrPending, "Ibarrier is under way", "rank")
	_, err := mpi.Ibcast(r.Comm, b, 0)
	r.class(err, mpi.ErrPending)
	alone := got(r.Create(r.ctx, got(r.Group().Incl(r.Rank()))(r), 0))(r)
	many := []mpi.Request{got(mpi.Ibarrier(alone))(r), got(mpi.Ibcast(alone, b, 0))(r)}
	r.must(mpi.Waitall(r.ctx, many, nil))
	got(q.Wait(r.ctx))(r)
	r.must(mpi.Bcast(r.ctx, r.Comm, b, 0))
	// A failed call is over, and so is a rejected one.
	r.class(mpi.Bcast(r.ctx, r.Comm, b, 3), mpi.ErrRoot)
	ended, stop := context.WithCancel(r.ctx)
	stop()
	switch r.Rank() {
	case 2: // no other rank makes this call, or is in a call when the abort arrives
		if err := mpi.Bcast(ended, r.Comm, b, 0); !errors.Is(err, context.Canceled) {
			r.fatalf("it ends with %v", err)
		}
		r.must(mpi.Send(r.ctx, r.Comm, b, 0, limitTag))
		r.must(mpi.Send(r.ctx, r.Comm, b, 1, limitTag))
	case 0, 1:
		got(mpi.Recv(r.ctx, r.Comm, b, 2, limitTag))(r)
	}
	r.must(mpi.Bcast(r.ctx, r.Comm, b, 0))
	equal(r, "number", b[0], 5)
}

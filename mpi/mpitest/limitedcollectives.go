package mpitest

import (
	"context"
	"errors"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// limitedCollectives checks that all collectives work on whole words, in a world whose peers support neither
// tags nor communicators.
func limitedCollectives(r *rank) {
	checkMovement(r, r.Comm, value[int32])
	checkMovement(r, r.Comm, value[int32], longLength)
	checkMovement(r, r.Comm, value[float32])
	checkMovement(r, r.Comm, location)
	checkVector(r, r.Comm, value[int64])
	checkReductions(r, r.Comm, value[float32], orderedOperators[float32]())
	checkReductions(r, r.Comm, value[complex64], numberOperators[complex64]())
	userFunctions(r, r.Comm)
	algorithms(r)
	r.checkNothingSent()
}

// collectiveWords checks that a length that is not a whole number of words is rejected if the wire to any peer cannot
// carry it.
func collectiveWords(r *rank) {
	short := make([]int16, 3)
	r.checkError(mpi.Bcast(r.ctx, r.Comm, short, 0), mpi.ErrCount, "6 bytes", "4 bytes", "rank ", "profile")
	r.checkClass(mpi.Gather(r.ctx, r.Comm, short, make([]int16, 9), 0), mpi.ErrCount)
	r.checkClass(mpi.Reduce(r.ctx, r.Comm, short, short, mpi.Sum, 0), mpi.ErrCount)
	_, err := mpi.Iscatter(r.Comm, make([]uint8, 15), make([]uint8, 5), 0)
	r.checkClass(err, mpi.ErrCount)
	b := []int16{7, int16(r.Rank())}
	r.must(mpi.Bcast(r.ctx, r.Comm, b, 0))
	checkSlice(r, "Bcast", b, []int16{7, 0})
	checkMovement(r, r.Comm, func(rank, i int) uint8 { return uint8(rank + i/4) }, 0, 4, 8, 4000)
	r.checkNothingSent()
}

// oneAtATime checks that a call is rejected while another one is in progress if messages match only by their order.
func oneAtATime(r *rank) {
	request := must(mpi.Ibarrier(r.Comm))(r)
	b := []int32{5}
	r.checkError(mpi.Bcast(r.ctx, r.Comm, b, 0), mpi.ErrPending, "Ibarrier is in progress", "rank")
	_, err := mpi.Ibcast(r.Comm, b, 0)
	r.checkClass(err, mpi.ErrPending)
	alone := must(r.Create(r.ctx, must(r.Group().Incl(r.Rank()))(r), 0))(r)
	many := []mpi.Request{must(mpi.Ibarrier(alone))(r), must(mpi.Ibcast(alone, b, 0))(r)}
	r.must(mpi.Waitall(r.ctx, many, nil))
	must(request.Wait(r.ctx))(r)
	r.must(mpi.Bcast(r.ctx, r.Comm, b, 0))
	// A failed call is no longer in progress, and neither is a rejected one.
	r.checkClass(mpi.Bcast(r.ctx, r.Comm, b, 3), mpi.ErrRoot)
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
		must(mpi.Recv(r.ctx, r.Comm, b, 2, limitTag))(r)
	}
	r.must(mpi.Bcast(r.ctx, r.Comm, b, 0))
	checkEqual(r, "number", b[0], 5)
}

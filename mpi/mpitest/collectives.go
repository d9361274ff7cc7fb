package mpitest

import (
	"slices"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// fromInt returns n as a value of type T, which may be complex.
func fromInt[T mpi.Number](n int) T {
	var v T
	for range n {
		v += T(1)
	}
	return v
}

// value returns element i of the data that a rank contributes. Values are small, so that sums fit into all types and
// are exact.
func value[T mpi.Number](rank, i int) T { return fromInt[T]((5*rank + 3*i + rank*i) % 12) }

// contribution returns the first n elements of the data that a rank contributes.
func contribution[T any](of func(rank, i int) T, rank, n int) []T {
	list := make([]T, n)
	for i := range list {
		list[i] = of(rank, i)
	}
	return list
}

// location returns a value together with an index. No rank contributes the same pair twice.
func location(rank, i int) mpi.Float64Loc {
	return mpi.Float64Loc{Value: float64((5*rank + 3*i) % 4), Index: int32(10*rank + i)}
}

// lengths lists block lengths in elements: none, one, and several. longLength is a length that exceeds the devices'
// eager limits.
var lengths = []int{0, 1, 7}

const longLength = 9000

// movement tests the calls that only move data, with several types: Bcast, Scatter, Gather, Allgather and Alltoall.
func movement(r *rank) {
	checkMovement(r, r.Comm, value[int32])
	checkMovement(r, r.Comm, value[int32], longLength)
	checkMovement(r, r.Comm, value[int8])
	checkMovement(r, r.Comm, value[uint16])
	checkMovement(r, r.Comm, value[float32])
	checkMovement(r, r.Comm, value[float64])
	checkMovement(r, r.Comm, value[complex128])
	checkMovement(r, r.Comm, value[celsius])
	checkMovement(r, r.Comm, location)
	// In this communicator, the ranks differ from the same processes' ranks in the world.
	turned := must(r.Split(r.ctx, r.Rank()%2, -r.Rank()))(r)
	checkMovement(r, turned, value[int32])
}

// checkMovement tests the calls that only move data, with blocks of the given lengths, or of the default lengths if
// none are given.
func checkMovement[T mpi.Element](r *rank, comm *mpi.Comm, of func(rank, i int) T, some ...int) {
	if some == nil {
		some = lengths
	}
	for i, n := range some {
		root := (i + 1) % comm.Size()
		checkBcast(r, comm, of, n, root)
		checkScatter(r, comm, of, n, root)
		checkGather(r, comm, of, n, root)
		checkAlltoall(r, comm, of, n)
	}
	r.must(mpi.Barrier(r.ctx, comm))
}

// checkBcast tests that all ranks receive the root's contribution.
func checkBcast[T mpi.Element](r *rank, c *mpi.Comm, of func(rank, i int) T, n, root int) {
	b := make([]T, n)
	if c.Rank() == root {
		b = contribution(of, root, n)
	}
	r.must(mpi.Bcast(r.ctx, c, b, root))
	checkSlice(r, "Bcast", b, contribution(of, root, n))
}

// checkScatter tests that the root's blocks reach all ranks, with and without the root's own block in place.
func checkScatter[T mpi.Element](r *rank, comm *mpi.Comm, of func(rank, i int) T, n, root int) {
	for _, inPlace := range []bool{false, true} {
		var all []T
		own := make([]T, n)
		if comm.Rank() == root {
			all = contribution(of, root, n*comm.Size())
			if inPlace {
				own = all[root*n:][:n]
			}
		}
		r.must(mpi.Scatter(r.ctx, comm, all, own, root))
		checkSlice(r, "Scatter", own, contribution(of, root, n*comm.Size())[comm.Rank()*n:][:n])
		if comm.Rank() == root {
			checkSlice(r, "the send buffer of Scatter", all, contribution(of, root, n*comm.Size()))
		}
	}
}

// checkGather tests that the contributions of all ranks arrive, at the root (Gather) and at every rank (Allgather).
func checkGather[T mpi.Element](r *rank, comm *mpi.Comm, of func(rank, i int) T, n, root int) {
	var want []T
	for rank := range comm.Size() {
		want = append(want, contribution(of, rank, n)...)
	}
	for _, inPlace := range []bool{false, true} {
		own := contribution(of, comm.Rank(), n)
		var all []T
		if comm.Rank() == root {
			all = make([]T, len(want))
			if inPlace {
				own = all[root*n:][:copy(all[root*n:], own)]
			}
		}
		r.must(mpi.Gather(r.ctx, comm, own, all, root))
		if comm.Rank() == root {
			checkSlice(r, "Gather", all, want)
		}
		own, all = contribution(of, comm.Rank(), n), make([]T, len(want))
		if inPlace {
			own = all[comm.Rank()*n:][:copy(all[comm.Rank()*n:], own)]
		}
		r.must(mpi.Allgather(r.ctx, comm, own, all))
		checkSlice(r, "Allgather", all, want)
	}
}

// checkAlltoall tests that each rank receives, from each rank, the block that is intended for it.
func checkAlltoall[T mpi.Element](r *rank, comm *mpi.Comm, of func(rank, i int) T, n int) {
	var want []T
	for rank := range comm.Size() {
		want = append(want, contribution(of, rank, n*comm.Size())[comm.Rank()*n:][:n]...)
	}
	send, recv := contribution(of, comm.Rank(), n*comm.Size()), make([]T, n*comm.Size())
	r.must(mpi.Alltoall(r.ctx, comm, send, recv))
	checkSlice(r, "Alltoall", recv, want)
	checkSlice(r, "the send buffer of Alltoall", send, contribution(of, comm.Rank(), n*comm.Size()))
	r.must(mpi.Alltoall(r.ctx, comm, send, send))
	checkSlice(r, "Alltoall in place", send, want)
}

// checkSlice checks that two slices are equal.
func checkSlice[T comparable](r *rank, what string, got, want []T) {
	r.t.Helper()
	if slices.Equal(got, want) {
		return
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			r.fatalf("element %d of %d of %s is %v, not %v", i, len(want), what, got[i], want[i])
		}
	}
	r.fatalf("%s has %d elements, not %d", what, len(got), len(want))
}

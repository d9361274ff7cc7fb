package mpitest

import (
	"github.com/zrlmpi/zrlmpid/mpi"
)

// vectors tests collective calls with blocks of different lengths, some of them empty, anywhere in the buffer.
func vectors(r *rank) {
	checkVector(r, r.Comm, value[int32])
	checkVector(r, r.Comm, value[uint8])
	checkVector(r, r.Comm, location)
	checkVector(r, must(r.Split(r.ctx, 0, -r.Rank()))(r), value[float64])
}

// blocks describes where each rank's block is in a buffer.
type blocks struct {
	counts, displs []int // displs may be nil
	length         int
}

// packedBlocks returns a layout of consecutive blocks.
func packedBlocks(counts []int) blocks {
	b := blocks{counts: counts}
	for _, n := range counts {
		b.length += n
	}
	return b
}

// spreadBlocks returns a layout in which the blocks are in reverse order and have gaps between them.
func spreadBlocks(counts []int) blocks {
	b := blocks{counts: counts, displs: make([]int, len(counts))}
	for i := len(counts) - 1; i >= 0; i-- {
		b.displs[i] = b.length + 1
		b.length += counts[i] + 2
	}
	return b
}

// blockAt returns block i of a buffer.
func blockAt[T any](b blocks, buf []T, i int) []T {
	off := 0
	if b.displs != nil {
		off = b.displs[i]
	} else {
		for _, n := range b.counts[:i] {
			off += n
		}
	}
	return buf[off:][:b.counts[i]]
}

// fillBlocks returns a buffer that contains the blocks of all ranks, with zeros in the gaps.
func fillBlocks[T mpi.Element](b blocks, of func(rank, i int) T) []T {
	buf := make([]T, b.length)
	for i, n := range b.counts {
		copy(blockAt(b, buf, i), contribution(of, i, n))
	}
	return buf
}

func checkVector[T mpi.Element](r *rank, comm *mpi.Comm, of func(rank, i int) T) {
	ranks, me := comm.Size(), comm.Rank()
	counts := make([]int, ranks)
	for i := range counts {
		counts[i] = []int{3, 0, 2000, 1}[i%4]
	}
	for i, b := range []blocks{packedBlocks(counts), spreadBlocks(counts)} {
		root := i % ranks
		for _, inPlace := range []bool{false, true} {
			want := fillBlocks(b, of)
			// Gatherv and Allgatherv must not write to the gaps.
			own, all := contribution(of, me, counts[me]), make([]T, b.length)
			if inPlace && me == root {
				own = blockAt(b, all, me)
				copy(own, contribution(of, me, counts[me]))
			}
			if me == root {
				r.must(mpi.Gatherv(r.ctx, comm, own, all, b.counts, b.displs, root))
				checkSlice(r, "Gatherv", all, want)
			} else {
				r.must(mpi.Gatherv(r.ctx, comm, own, nil, nil, nil, root))
			}
			own, all = contribution(of, me, counts[me]), make([]T, b.length)
			if inPlace {
				own = blockAt(b, all, me)
				copy(own, contribution(of, me, counts[me]))
			}
			r.must(mpi.Allgatherv(r.ctx, comm, own, all, b.counts, b.displs))
			checkSlice(r, "Allgatherv", all, want)

			own = make([]T, counts[me])
			if me == root {
				all = fillBlocks(b, of)
				if inPlace {
					own = blockAt(b, all, me)
				}
				r.must(mpi.Scatterv(r.ctx, comm, all, own, b.counts, b.displs, root))
				checkSlice(r, "the send buffer of Scatterv", all, want)
			} else {
				r.must(mpi.Scatterv(r.ctx, comm, nil, own, nil, nil, root))
			}
			checkSlice(r, "Scatterv", own, contribution(of, me, counts[me]))
		}
	}
	checkAlltoallv(r, comm, of)
}

// checkAlltoallv tests Alltoallv. The length of a block depends on the distance between the two ranks.
func checkAlltoallv[T mpi.Element](r *rank, comm *mpi.Comm, of func(rank, i int) T) {
	ranks, me := comm.Size(), comm.Rank()
	counts := make([]int, ranks)
	for i := range counts {
		counts[i] = 3 * max(me-i, i-me)
	}
	// A piece depends on both ranks.
	piece := func(from, to, i int) T { return of(from, 10*to+i) }
	for _, b := range []blocks{packedBlocks(counts), spreadBlocks(counts)} {
		to := fillBlocks(b, func(rank, i int) T { return piece(me, rank, i) })
		from := fillBlocks(b, func(rank, i int) T { return piece(rank, me, i) })
		recv := make([]T, b.length)
		r.must(mpi.Alltoallv(r.ctx, comm, to, b.counts, b.displs, recv, b.counts, b.displs))
		checkSlice(r, "Alltoallv", recv, from)
		// The layout for sending may differ from the layout for receiving.
		clear(recv)
		other := packedBlocks(counts)
		send := fillBlocks(other, func(rank, i int) T { return piece(me, rank, i) })
		r.must(mpi.Alltoallv(r.ctx, comm, send, other.counts, other.displs, recv, b.counts, b.displs))
		checkSlice(r, "Alltoallv", recv, from)
		if me%2 == 0 {
			r.must(mpi.Alltoallv(r.ctx, comm, to, nil, nil, to, b.counts, b.displs))
		} else {
			r.must(mpi.Alltoallv(r.ctx, comm, to, b.counts, b.displs, to, b.counts, b.displs))
		}
		checkSlice(r, "Alltoallv in place", to, from)
	}
}

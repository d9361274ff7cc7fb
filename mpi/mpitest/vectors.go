package mpitest

import (
	"github.com/zrlmpi/zrlmpid/mpi"
)

// vectors tests blocks of different lengths, some of them empty, in any places of the buffer.
func vectors(r *rank) {
	vector(r, r.Comm, value[int32])
	vector(r, r.Comm, value[uint8])
	vector(r, r.Comm, location)
	vector(r, got(r.Split(r.ctx, 0, -r.Rank()))(r), value[float64])
}

// blocks describes the layout of the blocks of all ranks.
type blocks struct {
	counts, displs []int // displs may be nil
	room           int
}

// packed returns a layout of consecutive blocks.
func packed(counts []int) blocks {
	b := blocks{counts: counts}
	for _, n := range counts {
		b.room += n
	}
	return b
}

// spread returns a layout in reverse order with gaps.
func spread(counts []int) blocks {
	b := blocks{counts: counts, displs: make([]int, len(counts))}
	for i := len(counts) - 1; i >= 0; i-- {
		b.displs[i] = b.room + 1
		b.room += counts[i] + 2
	}
	return b
}

// at returns block i of a buffer.
func at[T any](b blocks, buf []T, i int) []T {
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

// filled returns a buffer that contains the blocks of all ranks, with zeros in the gaps.
func filled[T mpi.Element](b blocks, of func(rank, i int) T) []T {
	buf := make([]T, b.room)
	for i, n := range b.counts {
		copy(at(b, buf, i), valuesOf(of, i, n))
	}
	return buf
}

func vector[T mpi.Element](r *rank, c *mpi.Comm, of func(rank, i int) T) {
	ranks, me := c.Size(), c.Rank()
	counts := make([]int, ranks)
	for i := range counts {
		counts[i] = []int{3, 0, 2000, 1}[i%4]
	}
	for i, b := range []blocks{packed(counts), spread(counts)} {
		root := i % ranks
		for _, inPlace := range []bool{false, true} {
			want := filled(b, of)
			// Gatherv and Allgatherv must not write to the gaps.
			own, all := valuesOf(of, me, counts[me]), make([]T, b.room)
			if inPlace && me == root {
				own = at(b, all, me)
				copy(own, valuesOf(of, me, counts[me]))
			}
			if me == root {
				r.must(mpi.Gatherv(r.ctx, c, own, all, b.counts, b.displs, root))
				same(r, "Gatherv", all, want)
			} else {
				r.must(mpi.Gatherv(r.ctx, c, own, nil, nil, nil, root))
			}
			own, all = valuesOf(of, me, counts[me]), make([]T, b.room)
			if inPlace {
				own = at(b, all, me)
				copy(own, valuesOf(of, me, counts[me]))
			}
			r.must(mpi.Allgatherv(r.ctx, c, own, all, b.counts, b.displs))
			same(r, "Allgatherv", all, want)

			own = make([]T, counts[me])
			if me == root {
				all = filled(b, of)
				if inPlace {
					own = at(b, all, me)
				}
				r.must(mpi.Scatterv(r.ctx, c, all, own, b.counts, b.displs, root))
				same(r, "what Scatterv sends", all, want)
			} else {
				r.must(mpi.Scatterv(r.ctx, c, nil, own, nil, nil, root))
			}
			same(r, "Scatterv", own, valuesOf(of, me, counts[me]))
		}
	}
	swaps(r, c, of)
}

// swaps tests Alltoallv. The length of a block depends on the distance between the two ranks.
func swaps[T mpi.Element](r *rank, c *mpi.Comm, of func(rank, i int) T) {
	ranks, me := c.Size(), c.Rank()
	counts := make([]int, ranks)
	for i := range counts {
		counts[i] = 3 * max(me-i, i-me)
	}
	// A piece depends on both ranks.
	piece := func(from, to, i int) T { return of(from, 10*to+i) }
	for _, b := range []blocks{packed(counts), spread(counts)} {
		to := filled(b, func(rank, i int) T { return piece(me, rank, i) })
		from := filled(b, func(rank, i int) T { return piece(rank, me, i) })
		recv := make([]T, b.room)
		r.must(mpi.Alltoallv(r.ctx, c, to, b.counts, b.displs, recv, b.counts, b.displs))
		same(r, "Alltoallv", recv, from)
		// The layouts of sent and received blocks may differ.
		clear(recv)
		other := packed(counts)
		send := filled(other, func(rank, i int) T { return piece(me, rank, i) })
		r.must(mpi.Alltoallv(r.ctx, c, send, other.counts, other.displs, recv, b.counts, b.displs))
		same(r, "Alltoallv", recv, from)
		if me%2 == 0 {
			r.must(mpi.Alltoallv(r.ctx, c, to, nil, nil, to, b.counts, b.displs))
		} else {
			r.must(mpi.Alltoallv(r.ctx, c, to, b.counts, b.displs, to, b.counts, b.displs))
		}
		same(r, "Alltoallv in place", to, from)
	}
}

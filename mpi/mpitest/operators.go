package mpitest

import (
	"github.com/zrlmpi/zrlmpid/mpi"
)

// affine returns a function x → ax + b on integers modulo 2³², encoded as a number. Composition of these
// functions is associative but not commutative.
func affine(rank, i int) uint64 { return uint64(2*(7*rank+i)+3)<<32 | uint64(rank+100*i+1) }

// compose returns the composition that applies a first, then b.
func compose(a, b uint64) uint64 {
	a1, a0, b1, b0 := uint32(a>>32), uint32(a), uint32(b>>32), uint32(b)
	return uint64(b1*a1)<<32 | uint64(b1*a0+b0)
}

// userOperators tests the program's own functions, one of which is not commutative.
func userOperators(r *rank) {
	userFunctions(r, r.Comm)
	userFunctions(r, must(r.Split(r.ctx, 0, -r.Rank()))(r))
}

func userFunctions(r *rank, comm *mpi.Comm) {
	ordered := mpi.OpOf(func(in, inout []uint64) {
		for i := range in {
			inout[i] = compose(in[i], inout[i])
		}
	}, false)
	checkReductions(r, comm, affine, []operator[uint64]{{ordered, compose}})
	checkReductions(r, comm, affine, []operator[uint64]{{ordered, compose}}, mpi.WithAlgorithm("flat"))
	highest := func(a, b mpi.Int16Loc) mpi.Int16Loc {
		if b.Value > a.Value {
			return b
		}
		return a
	}
	commuting := mpi.OpOf(func(in, inout []mpi.Int16Loc) {
		for i := range in {
			inout[i] = highest(in[i], inout[i])
		}
	}, true)
	checkReductions(r, comm, func(rank, i int) mpi.Int16Loc {
		return mpi.Int16Loc{Value: int16((7*rank + i) % 31), Index: int32((7*rank + i) % 31)}
	}, []operator[mpi.Int16Loc]{{commuting, highest}})
}

// algorithms checks that all algorithms give the same result for the same call.
func algorithms(r *rank) {
	const n = 500
	for _, o := range []struct {
		name string
		opts []mpi.Option
	}{
		{"binomial", nil}, {"flat", nil}, {"scatter-allgather", nil}, {"chain", []mpi.Option{mpi.WithSegment(96)}},
		{"", nil},
	} {
		b := make([]int32, n)
		if r.Rank() == r.Size()-1 {
			b = contribution(value[int32], r.Rank(), n)
		}
		r.must(mpi.Bcast(r.ctx, r.Comm, b, r.Size()-1, append(o.opts, mpi.WithAlgorithm(o.name))...))
		checkSlice(r, "Bcast by "+o.name, b, contribution(value[int32], r.Size()-1, n))
	}
	for _, name := range []string{"recursive-doubling", "rabenseifner", "ring"} {
		b := contribution(value[int32], r.Rank(), n)
		r.must(mpi.Allreduce(r.ctx, r.Comm, b, b, mpi.Sum, mpi.WithAlgorithm(name)))
		checkSlice(r, "Allreduce by "+name, b, reduceSerially(value[int32], func(a, b int32) int32 { return a + b },
			r.Size(), n))
	}
	for _, name := range []string{"dissemination", "toggle"} {
		r.must(mpi.Barrier(r.ctx, r.Comm, mpi.WithAlgorithm(name)))
	}
}

package mpitest

import (
	"cmp"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// operator is an operation together with its expected effect on two elements, of which a comes from lower ranks than b.
type operator[T any] struct {
	op mpi.Op
	f  func(a, b T) T
}

func numberOperators[T mpi.Number]() []operator[T] {
	return []operator[T]{
		{mpi.Sum, func(a, b T) T { return a + b }},
		{mpi.Prod, func(a, b T) T { return a * b }},
		{mpi.OpOf(func(in, inout []T) {
			for i := range in {
				inout[i] += in[i]
			}
		}, true), func(a, b T) T { return a + b }},
	}
}

func orderedOperators[T interface {
	mpi.Number
	cmp.Ordered
}]() []operator[T] {
	return append(numberOperators[T](),
		operator[T]{mpi.Max, func(a, b T) T { return max(a, b) }},
		operator[T]{mpi.Min, func(a, b T) T { return min(a, b) }})
}

type integer interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

func integerOperators[T integer]() []operator[T] {
	truth := func(b bool) T {
		if b {
			return 1
		}
		return 0
	}
	return append(orderedOperators[T](),
		operator[T]{mpi.LAnd, func(a, b T) T { return truth(a != 0 && b != 0) }},
		operator[T]{mpi.LOr, func(a, b T) T { return truth(a != 0 || b != 0) }},
		operator[T]{mpi.LXor, func(a, b T) T { return truth((a != 0) != (b != 0)) }},
		operator[T]{mpi.BAnd, func(a, b T) T { return a & b }},
		operator[T]{mpi.BOr, func(a, b T) T { return a | b }},
		operator[T]{mpi.BXor, func(a, b T) T { return a ^ b }})
}

// reductions tests all operations on all types for which they are defined.
func reductions(r *rank) {
	checkReductions(r, r.Comm, value[int8], integerOperators[int8]())
	checkReductions(r, r.Comm, value[int16], integerOperators[int16]())
	checkReductions(r, r.Comm, value[int32], integerOperators[int32]())
	checkReductions(r, r.Comm, value[int64], integerOperators[int64]())
	checkReductions(r, r.Comm, value[uint8], integerOperators[uint8]())
	checkReductions(r, r.Comm, value[uint16], integerOperators[uint16]())
	checkReductions(r, r.Comm, value[uint32], integerOperators[uint32]())
	checkReductions(r, r.Comm, value[uint64], integerOperators[uint64]())
	checkReductions(r, r.Comm, value[float32], orderedOperators[float32]())
	checkReductions(r, r.Comm, value[float64], orderedOperators[float64]())
	checkReductions(r, r.Comm, value[celsius], orderedOperators[celsius]())
	checkReductions(r, r.Comm, value[complex64], numberOperators[complex64]())
	checkReductions(r, r.Comm, value[complex128], numberOperators[complex128]())
	locations(r)
}

// someReductions tests reductions on fewer types, so that it is fast enough for more ranks.
func someReductions(r *rank) {
	checkReductions(r, r.Comm, value[uint8], integerOperators[uint8]())
	checkReductions(r, r.Comm, value[float64], orderedOperators[float64]())
	locations(r)
	turned := must(r.Split(r.ctx, r.Rank()%2, -r.Rank()))(r)
	checkReductions(r, turned, value[int32], numberOperators[int32]())
}

// locations tests reductions of values with an index, such as MaxLoc.
func locations(r *rank) {
	ops := func(less func(a, b mpi.Float64Loc) bool) func(a, b mpi.Float64Loc) mpi.Float64Loc {
		return func(a, b mpi.Float64Loc) mpi.Float64Loc {
			if less(a, b) || a.Value == b.Value && b.Index < a.Index {
				return b
			}
			return a
		}
	}
	highest := ops(func(a, b mpi.Float64Loc) bool { return a.Value < b.Value })
	lowest := ops(func(a, b mpi.Float64Loc) bool { return a.Value > b.Value })
	checkReductions(r, r.Comm, location, []operator[mpi.Float64Loc]{{mpi.MaxLoc, highest}, {mpi.MinLoc, lowest}})
	// Elements of the other types contain the same numbers.
	checkReductions(r, r.Comm, func(rank, i int) mpi.Int16Loc {
		l := location(rank, i)
		return mpi.Int16Loc{Value: int16(l.Value), Index: l.Index}
	}, []operator[mpi.Int16Loc]{{mpi.MaxLoc, func(a, b mpi.Int16Loc) mpi.Int16Loc {
		l := highest(mpi.Float64Loc{Value: float64(a.Value), Index: a.Index},
			mpi.Float64Loc{Value: float64(b.Value), Index: b.Index})
		return mpi.Int16Loc{Value: int16(l.Value), Index: l.Index}
	}}})
	checkMinLoc(r, func(l mpi.Float64Loc) mpi.Int32Loc { return mpi.Int32Loc{Value: int32(l.Value), Index: l.Index} })
	checkMinLoc(r, func(l mpi.Float64Loc) mpi.Int64Loc { return mpi.Int64Loc{Value: int64(l.Value), Index: l.Index} })
	checkMinLoc(r, func(l mpi.Float64Loc) mpi.Float32Loc {
		return mpi.Float32Loc{Value: float32(l.Value),
			Index: l.Index}
	})
}

// checkMinLoc checks that MinLoc finds the lowest value and its rank.
func checkMinLoc[T mpi.Element](r *rank, from func(l mpi.Float64Loc) T) {
	mine := from(mpi.Float64Loc{Value: float64((r.Rank() + 2) % r.Size()), Index: int32(r.Rank())})
	all := make([]T, 1)
	r.must(mpi.Allreduce(r.ctx, r.Comm, []T{mine}, all, mpi.MinLoc))
	want := from(mpi.Float64Loc{Index: int32((2*r.Size() - 2) % r.Size())})
	checkSlice(r, "the least", all, []T{want})
}

// reduceSerially combines the contributions of the first ranks, whose number is given as ranks.
func reduceSerially[T any](of func(rank, i int) T, f func(a, b T) T, ranks, n int) []T {
	all := contribution(of, 0, n)
	for rank := 1; rank < ranks; rank++ {
		for i, v := range contribution(of, rank, n) {
			all[i] = f(all[i], v)
		}
	}
	return all
}

// checkReductions tests operations with every reducing collective.
func checkReductions[T mpi.Element](r *rank, comm *mpi.Comm, of func(rank, i int) T, ops []operator[T],
	opts ...mpi.Option) {
	for k, o := range ops {
		root := k % comm.Size()
		checkReduction(r, comm, of, o, 1, root, k%2 == 0, opts)
		checkReduction(r, comm, of, o, 9, root, k%2 != 0, opts)
	}
	for _, inPlace := range []bool{false, true} {
		checkReduction(r, comm, of, ops[0], 0, 0, inPlace, opts)
		checkReduction(r, comm, of, ops[0], 600, 0, inPlace, opts)
	}
}

func checkReduction[T mpi.Element](r *rank, comm *mpi.Comm, of func(rank, i int) T, o operator[T], n, root int,
	inPlace bool,
	opts []mpi.Option) {
	ranks, me := comm.Size(), comm.Rank()
	// buffers returns a send and a receive buffer of n elements.
	buffers := func(n int) (send, recv []T) {
		send, recv = contribution(of, me, n), make([]T, n)
		if inPlace {
			recv = send
		}
		return send, recv
	}
	all := reduceSerially(of, o.f, ranks, n)
	send, recv := buffers(n)
	r.must(mpi.Reduce(r.ctx, comm, send, recv, o.op, root, opts...))
	if me == root {
		checkSlice(r, "Reduce by "+o.op.String(), recv, all)
	} else {
		checkSlice(r, "the send buffer of Reduce", send, contribution(of, me, n))
	}
	send, recv = buffers(n)
	r.must(mpi.Allreduce(r.ctx, comm, send, recv, o.op))
	checkSlice(r, "Allreduce by "+o.op.String(), recv, all)
	send, recv = buffers(n)
	r.must(mpi.Scan(r.ctx, comm, send, recv, o.op))
	checkSlice(r, "Scan by "+o.op.String(), recv, reduceSerially(of, o.f, me+1, n))
	send, recv = buffers(n)
	r.must(mpi.Exscan(r.ctx, comm, send, recv, o.op))
	if me > 0 {
		checkSlice(r, "Exscan by "+o.op.String(), recv, reduceSerially(of, o.f, me, n))
	}

	send, recv = buffers(n * ranks)
	all = reduceSerially(of, o.f, ranks, n*ranks)
	r.must(mpi.ReduceScatterBlock(r.ctx, comm, send, recv[:n], o.op))
	checkSlice(r, "ReduceScatterBlock by "+o.op.String(), recv[:n], all[me*n:][:n])
	counts, at, sum := make([]int, ranks), 0, 0
	for i := range counts {
		counts[i] = (i * n) % 4
		if i < me {
			at += counts[i]
		}
		sum += counts[i]
	}
	send, recv = buffers(sum)
	r.must(mpi.ReduceScatter(r.ctx, comm, send, recv[:counts[me]], counts, o.op))
	checkSlice(r, "ReduceScatter by "+o.op.String(), recv[:counts[me]],
		reduceSerially(of, o.f, ranks, sum)[at:][:counts[me]])
}

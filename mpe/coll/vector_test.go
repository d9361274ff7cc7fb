package coll_test

import (
	"math/rand/v2"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/collcheck"
)

// sizes returns random block sizes, some of them zero.
func sizes(rng *rand.Rand, n, elem int) []int {
	list := make([]int, n)
	for i := range list {
		if rng.IntN(3) > 0 {
			list[i] = rng.IntN(6) * elem
		}
	}
	return list
}

// spread places blocks with gaps, in reverse order.
func spread(sizes []int, elem int) []int {
	offsets, at := make([]int, len(sizes)), elem
	for i := len(sizes) - 1; i >= 0; i-- {
		offsets[i] = at
		at += sizes[i] + elem*(i%2)
	}
	return offsets
}

// vectorCalls returns calls of a v-form with random layouts.
func vectorCalls(rng *rand.Rand, c coll.Call) []coll.Call {
	p, elem := c.Ranks, max(c.Elem, 1)
	c.Vector = true
	calls := eachRank(c)
	switch c.Collective {
	case coll.Gather, coll.Scatter:
		l := coll.Layout{Sizes: sizes(rng, p, elem)}
		l.Offsets = spread(l.Sizes, elem)
		for r := range calls {
			calls[r].Bytes = l.Sizes[r]
		}
		calls[c.Root].Recv, calls[c.Root].Send = l, l
	case coll.Allgather, coll.ReduceScatter:
		l := coll.Layout{Sizes: sizes(rng, p, elem)}
		if c.Collective == coll.Allgather && rng.IntN(2) == 0 {
			l.Offsets = spread(l.Sizes, elem)
		}
		for r := range calls {
			calls[r].Recv = l
		}
	case coll.Alltoall:
		matrix := make([][]int, p)
		for r := range matrix {
			matrix[r] = sizes(rng, p, elem)
		}
		for r := range calls {
			column := make([]int, p)
			for i := range column {
				if c.InPlace && i > r {
					matrix[i][r] = matrix[r][i] // both directions have the same length
				}
				column[i] = matrix[i][r]
			}
			calls[r].Recv = coll.Layout{Sizes: column, Offsets: spread(column, elem)}
			calls[r].Send = coll.Layout{Sizes: matrix[r], Offsets: spread(matrix[r], elem)}
		}
	}
	return calls
}

var vectored = []coll.Collective{coll.Gather, coll.Scatter, coll.Allgather, coll.Alltoall, coll.ReduceScatter}

func TestVectorForms(t *testing.T) {
	for _, collective := range vectored {
		for _, a := range coll.Algorithms(collective) {
			rng := rand.New(rand.NewPCG(1, uint64(collective)))
			proved := 0
			for _, p := range []int{1, 2, 3, 5, 8, 13, 16, 31} {
				for bits := range 8 {
					c := coll.Call{Collective: collective, Ranks: p, Elem: 1 + 3*(bits&1), InPlace: bits&2 != 0,
						Ordered: bits&4 != 0}
					if collective <= coll.Scatter {
						c.Root = rng.IntN(p)
					}
					calls := vectorCalls(rng, c)
					if a.CheckSupport(calls[c.Root]) != nil {
						continue
					}
					got, err := collcheck.Prove(a, calls)
					if err != nil {
						t.Fatalf("%v by %s, %+v: %v", collective, a.Name, calls, err)
					}
					want, _ := byFormula(t, a, calls[c.Root])
					proved++
					if collective == coll.Alltoall {
						continue // no rank knows all sizes
					}
					if got.Messages != want.Messages || got.Volume != want.Volume ||
						got.Rounds > want.Rounds || got.Bytes > want.Bytes || got.Reduced > want.Reduced {
						t.Fatalf("%v by %s, %+v: counted %+v, the formula says %+v", collective, a.Name, calls[c.Root],
							got, want)
					}
				}
			}
			if proved == 0 && a.CheckSupport(coll.Call{Collective: collective, Ranks: 2, Vector: true, Bytes: 1,
				Recv: coll.Layout{Sizes: []int{1, 1}}, Send: coll.Layout{Sizes: []int{1, 1}}}) == nil {
				t.Errorf("%v by %s: nothing proved", collective, a.Name)
			}
		}
	}
}

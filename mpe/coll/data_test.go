package coll_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/collcheck"
	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
)

// compose is an associative operation that is not commutative: an element is an affine function x → ax + b of
// integers modulo 256, and the operation is composition.
func compose(result, left, right []byte) {
	for i := 0; i+1 < len(result); i += 2 {
		a, b := left[i], left[i+1]
		result[i], result[i+1] = a*right[i], a*right[i+1]+b
	}
}

// add is a commutative operation.
func add(result, left, right []byte) {
	for i := range result {
		result[i] = left[i] + right[i]
	}
}

// fold combines contributions sequentially.
func fold(contributions [][]byte, combine op.Func) []byte {
	acc := bytes.Clone(contributions[len(contributions)-1])
	for i := len(contributions) - 2; i >= 0; i-- {
		combine(acc, contributions[i], acc)
	}
	return acc
}

// reference returns the required result of each rank.
func reference(c coll.Call, in [][]byte, combine op.Func) [][]byte {
	out := make([][]byte, c.Ranks)
	n := c.Bytes
	for r := range out {
		switch c.Collective {
		case coll.Bcast:
			out[r] = in[c.Root]
		case coll.Reduce, coll.Allreduce:
			if c.Collective == coll.Allreduce || r == c.Root {
				out[r] = fold(in, combine)
			}
		case coll.Gather, coll.Allgather:
			if c.Collective == coll.Allgather || r == c.Root {
				out[r] = bytes.Join(in, nil)
			}
		case coll.Scatter:
			out[r] = in[c.Root][r*n : (r+1)*n]
		case coll.Alltoall:
			for i := range in {
				out[r] = append(out[r], in[i][r*n:(r+1)*n]...)
			}
		case coll.ReduceScatter:
			out[r] = fold(in, combine)[r*n : (r+1)*n]
		case coll.Scan:
			out[r] = fold(in[:r+1], combine)
		case coll.Exscan:
			if r > 0 {
				out[r] = fold(in[:r], combine)
			}
		}
	}
	return out
}

// TestData runs the schedules on data, and compares the results with the definition of the collectives.
func TestData(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	eachAlgorithm(t, func(t *testing.T, a *coll.Algorithm) {
		for _, p := range []int{1, 2, 3, 4, 5, 7, 8, 12, 16, 19} {
			for _, n := range []int{0, 2, 6, 50} {
				for _, ordered := range []bool{false, true} {
					c := coll.Call{Collective: a.Collective, Ranks: p, Bytes: n, Elem: 2, Ordered: ordered, Segment: 4,
						Shared: 5 * p}
					if a.Collective == coll.Barrier || a.CheckSupport(c) != nil {
						continue
					}
					if a.Collective < coll.Allreduce {
						c.Root = p - 1
					}
					combine := add
					if ordered {
						combine = compose
					}
					calls := eachRank(c)
					data, in := make([]collcheck.Data, p), make([][]byte, p)
					for r := range data {
						send, recv := collcheck.Buffers(&calls[r])
						data[r] = collcheck.Data{Send: make([]byte, send), Recv: make([]byte, recv)}
						in[r] = data[r].Send
						if c.Collective == coll.Bcast {
							in[r] = make([]byte, n)
						}
						for i := range in[r] {
							in[r][i] = byte(rng.Uint32())
						}
						if c.Collective == coll.Bcast && r == c.Root {
							copy(data[r].Recv, in[r])
						}
					}
					if err := collcheck.Execute(a, calls, data, combine); err != nil {
						t.Fatalf("%+v: %v", c, err)
					}
					for r, want := range reference(c, in, combine) {
						if want != nil && !bytes.Equal(data[r].Recv, want) {
							t.Fatalf("%+v: rank %d has %v, and must have %v", c, r, data[r].Recv, want)
						}
					}
				}
			}
		}
	})
}

package steps_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/check"
	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
	"github.com/zrlmpi/zrlmpid/mpi/mpitest"
)

// Every algorithm that needs no forwarding, against the executor that the schedules are
// proved with: the same bytes, whether messages wait for their receives or not.
func TestData(t *testing.T) {
	for _, eager := range []int{-1, 16} {
		for collective := coll.Barrier; collective <= coll.Exscan; collective++ {
			for _, a := range coll.Algorithms(collective) {
				t.Run(fmt.Sprintf("%v/%s/eager=%d", collective, a.Name, eager), func(t *testing.T) {
					rng := rand.New(rand.NewPCG(3, uint64(collective)))
					some := false
					for _, p := range []int{1, 2, 3, 6, 8} {
						for bits := range 16 {
							c := coll.Call{
								Collective: collective, Ranks: p, Elem: 2, Bytes: []int{0, 2, 50, 2000}[rng.IntN(4)],
								InPlace: bits&1 != 0, Ordered: bits&2 != 0, Segment: bits & 4 * 10, Token: bits & 8 / 2,
							}
							if collective < coll.Allreduce {
								c.Root = rng.IntN(p)
							}
							if collective == coll.Bcast {
								c.InPlace = false
							}
							if a.Name == "tree" {
								c.Root = 0
								for r := 1; r < p; r++ {
									c.FPGAs = append(c.FPGAs, r)
								}
							}
							if a.Fits(c) == nil {
								some = true
								compare(t, a, eachRank(c), rng, eager)
							}
						}
					}
					if !some && a.Name != "atomic" {
						t.Error("it was never run")
					}
				})
			}
		}
	}
}

// compare runs a call here and in the checker.
func compare(t *testing.T, a *coll.Algorithm, calls []coll.Call, rng *rand.Rand, eager int) {
	t.Helper()
	data := buffers(rng, calls)
	want := make([]check.Data, len(data))
	for r := range data {
		want[r] = check.Data{Send: bytes.Clone(data[r].Send), Recv: bytes.Clone(data[r].Recv)}
	}
	add, err := op.Lookup(op.Sum, op.Int16)
	if err != nil {
		t.Fatal(err)
	}
	if calls[0].Ordered {
		add = func(inout, in []byte) { compose(in, inout) }
	}
	if err := check.Execute(a, calls, want, add); err != nil {
		t.Fatal(err)
	}
	list := make([]*mpe.Collective, len(calls))
	for r := range calls {
		list[r] = collective(calls[r], data[r])
		list[r].Algorithm = a.Name
	}
	for r, err := range run(within(t), world(t, len(calls), mpitest.Options{Eager: eager}), list) {
		if err != nil {
			t.Fatalf("%+v: rank %d: %v", calls[r], r, err)
		}
		if !bytes.Equal(data[r].Recv, want[r].Recv) || !bytes.Equal(data[r].Send, want[r].Send) {
			t.Fatalf("%+v: rank %d has\n%v, and must have\n%v", calls[r], r, data[r].Recv, want[r].Recv)
		}
	}
}

// Blocks of different sizes, some empty, with gaps between them.
func TestLayouts(t *testing.T) {
	const p = 5
	layout := coll.Layout{Sizes: []int{4, 0, 10, 2, 6}, Offsets: []int{20, 0, 2, 14, 26}}
	rng := rand.New(rand.NewPCG(5, 5))
	for _, collective := range []coll.Collective{coll.Gather, coll.Scatter, coll.Allgather, coll.Alltoall, coll.ReduceScatter} {
		for _, a := range coll.Algorithms(collective) {
			for bits := range 4 {
				calls := eachRank(coll.Call{Collective: collective, Ranks: p, Elem: 2, Vector: true, InPlace: bits&1 != 0, Ordered: bits&2 != 0})
				for r := range calls {
					c := &calls[r]
					switch collective {
					case coll.Gather, coll.Scatter:
						c.Root, c.Bytes = 3, layout.Sizes[r]
						if r == c.Root {
							c.Send, c.Recv = layout, layout
						}
					case coll.ReduceScatter:
						c.Recv.Sizes = layout.Sizes
					case coll.Alltoall: // what rank i sends to j is as long as i and j are far apart
						for i := range p {
							d := 2 * max(r-i, i-r)
							c.Recv.Sizes = append(c.Recv.Sizes, d)
							c.Recv.Offsets = append(c.Recv.Offsets, 12*(p-1-i))
						}
						c.Send = c.Recv
					default:
						c.Recv = layout
					}
				}
				if a.Fits(calls[calls[0].Root]) == nil {
					compare(t, a, calls, rng, -1)
				}
			}
		}
	}
}

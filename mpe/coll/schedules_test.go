package coll_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/zrlmpi/zrlmpid/internal/testkit/race"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/collcheck"
)

// all returns all collectives.
func all() (list []coll.Collective) {
	for c := coll.Barrier; c <= coll.Exscan; c++ {
		list = append(list, c)
	}
	return list
}

// eachRank returns the calls of all ranks.
func eachRank(c coll.Call) []coll.Call {
	calls := make([]coll.Call, c.Ranks)
	for r := range calls {
		calls[r] = c
		calls[r].Rank = r
	}
	return calls
}

// prove proves an algorithm for a call, and compares the cost with the algorithm's formula. It returns false if the
// algorithm does not support the call.
func prove(t *testing.T, a *coll.Algorithm, c coll.Call) bool {
	t.Helper()
	c.Flows = true
	if c.Shared == 0 { // the buffers are so small that the algorithms use chunks
		c.Shared = 4 * c.Ranks * max(c.Elem, 1)
	}
	calls := eachRank(c)
	if a.CheckSupport(c) != nil {
		return false
	}
	got, err := collcheck.Prove(a, calls)
	if err != nil {
		t.Fatalf("%v by %s, %+v: %v", c.Collective, a.Name, c, err)
	}
	if a.Shares { // there are no messages
		return true
	}
	want, bound := byFormula(t, a, calls[c.Root])
	compare(t, a, c, got, want, bound)
	return true
}

// byFormula returns the cost of a call according to the formula, and whether the formula is only an upper bound.
func byFormula(t *testing.T, a *coll.Algorithm, c coll.Call) (want collcheck.Cost, bound bool) {
	t.Helper()
	var err error
	if want.Cost, err = a.Cost(c); err != nil {
		t.Fatal(err)
	}
	want.Messages, want.Volume, bound = a.Traffic(c)
	return want, bound
}

// compare compares the counted cost with the formula. They must be equal if the data can be divided evenly.
// Otherwise, a piece may be one element longer at each division.
func compare(t *testing.T, a *coll.Algorithm, c coll.Call, got, want collcheck.Cost, bound bool) {
	t.Helper()
	elem := max(c.Elem, 1)
	even := c.Bytes/elem%c.Ranks == 0 && c.Bytes/elem%powerOfTwo(c.Ranks) == 0
	if even && !bound && c.Bytes > 0 || c.Collective == coll.Barrier {
		if got != want {
			t.Fatalf("%v by %s, %+v: counted %+v, the formula says %+v", c.Collective, a.Name, c, got, want)
		}
		return
	}
	slack := 0
	if !even {
		slack = 2 * c.Ranks * elem
	}
	if got.Rounds > want.Rounds || got.Bytes > want.Bytes+slack || got.Reduced > want.Reduced+slack {
		t.Fatalf("%v by %s, %+v: counted %+v, the formula says at most %+v and %d bytes", c.Collective, a.Name, c, got,
			want, slack)
	}
	if even && c.Bytes > 0 && (got.Messages != want.Messages || got.Volume != want.Volume) {
		t.Fatalf("%v by %s, %+v: counted %+v, the formula says %+v", c.Collective, a.Name, c, got, want)
	}
}

func powerOfTwo(n int) int {
	p := 1
	for 2*p <= n {
		p *= 2
	}
	return p
}

// upstreamFPGAs returns all ranks except the root.
func upstreamFPGAs(ranks, root int) (list []int) {
	for r := range ranks {
		if r != root {
			list = append(list, r)
		}
	}
	return list
}

// eachAlgorithm runs f for every algorithm.
func eachAlgorithm(t *testing.T, f func(t *testing.T, a *coll.Algorithm)) {
	for _, c := range all() {
		for _, a := range coll.Algorithms(c) {
			t.Run(fmt.Sprintf("%v/%s", c, a.Name), func(t *testing.T) { f(t, a) })
		}
	}
}

// TestAllRanks proves all algorithms for every number of ranks up to 128, with various roots.
func TestAllRanks(t *testing.T) {
	eachAlgorithm(t, func(t *testing.T, a *coll.Algorithm) {
		t.Parallel()
		proved := 0
		for p := 1; p <= 128; p++ {
			if race.Enabled && p > 20 && p != 32 && p != 63 {
				continue
			}
			c := coll.Call{Collective: a.Collective, Ranks: p, Bytes: 1}
			if a.Collective == coll.Bcast || a.Collective == coll.Allreduce || a.Collective == coll.Reduce {
				c.Bytes = p * powerOfTwo(p)
				for c.Bytes > 2*p+1 && c.Bytes%2 == 0 && (c.Bytes/2)%p == 0 && (c.Bytes/2)%powerOfTwo(p) == 0 {
					c.Bytes /= 2
				}
				if c.Bytes > 600 {
					c.Bytes = 131
				}
			}
			if a.Collective <= coll.Reduce || a.Collective == coll.Gather || a.Collective == coll.Scatter {
				c.Root = p / 2
			}
			if a.Collective == coll.Barrier {
				c.Root = 0
			}
			if a.Name == "tree" {
				c.Root = 0
				c.FPGAs = upstreamFPGAs(p, 0)
			}
			if a.Segmented {
				c.Segment = 2
				c.Bytes = 12
			}
			if prove(t, a, c) {
				proved++
			}
		}
		if proved < 6 {
			t.Fatalf("only %d proofs", proved)
		}
	})
}

// TestAllShapes varies roots, lengths, elements, orders and places, for fewer numbers of ranks.
func TestAllShapes(t *testing.T) {
	eachAlgorithm(t, func(t *testing.T, a *coll.Algorithm) {
		t.Parallel()
		proved := 0
		for _, p := range []int{1, 2, 3, 4, 5, 7, 8, 9, 13, 16} {
			for i, root := range []int{0, p / 2, p - 1} {
				if i > 0 && root == 0 {
					continue
				}
				for _, n := range []int{0, 4, 12, 4 * p, 8 * p * powerOfTwo(p), 100} {
					n = min(n, 600)
					if n > 12 && a.Collective > coll.Allreduce && a.Collective < coll.Scan {
						continue // the blocks of the ranks together are long enough
					}
					for bits := range 8 {
						c := coll.Call{
							Collective: a.Collective, Ranks: p, Root: root, Bytes: n, Elem: 4,
							InPlace: bits&1 != 0, Ordered: bits&2 != 0, FPGAs: upstreamFPGAs(p, root),
						}
						if bits&4 != 0 {
							c.Segment, c.Token, c.Shared = 8, 4, 1<<14
						}
						if n > 100 && (bits != 0 && bits != 3 || a.Collective == coll.Alltoall) {
							continue
						}
						if a.Collective == coll.Barrier || a.Collective > coll.Scatter ||
							a.Collective == coll.Allreduce {
							c.Root = 0
						}
						if prove(t, a, c) {
							proved++
						}
					}
				}
			}
		}
		if proved < 50 {
			t.Fatalf("only %d proofs", proved)
		}
	})
}

// TestUpstreamBlocks checks that schedules for ranks built with upstream's compiler execute one blocking step at a
// time, and send no message without content.
func TestUpstreamBlocks(t *testing.T) {
	for _, collective := range []coll.Collective{coll.Bcast, coll.Reduce, coll.Gather, coll.Scatter} {
		for _, name := range []string{"flat", "tree"} {
			a, err := coll.Find(collective, name)
			if err != nil {
				t.Fatal(err)
			}
			for p := 3; p <= 65; p++ {
				c := coll.Call{Collective: collective, Ranks: p, Bytes: 4, Elem: 4, FPGAs: upstreamFPGAs(p, 0)}
				programs, err := collcheck.Programs(a, eachRank(c))
				if err != nil {
					t.Fatal(err)
				}
				for r := range programs {
					if programs[r].Window != 1 {
						t.Fatalf("%v by %s: rank %d of %d needs a window of %d", collective, name, r, p,
							programs[r].Window)
					}
					for _, s := range programs[r].Steps {
						if (s.Sends() || s.Receives()) && s.Len == 0 {
							t.Fatalf("%v by %s: rank %d has a message of no bytes", collective, name, r)
						}
					}
				}
			}
		}
	}
}

// TestUpstreamTree checks that groups follow the cluster file: of ten FPGAs, numbers 1, 5 and 9 exchange messages
// with the root.
func TestUpstreamTree(t *testing.T) {
	a, err := coll.Find(coll.Bcast, "tree")
	if err != nil {
		t.Fatal(err)
	}
	programs, err := collcheck.Programs(a, eachRank(coll.Call{
		Collective: coll.Bcast, Ranks: 11, Root: 2, Bytes: 4, FPGAs: []int{1, 0, 3, 4, 5, 6, 7, 8, 10, 9}}))
	if err != nil {
		t.Fatal(err)
	}
	peers := func(rank int) (list []int) {
		for _, s := range programs[rank].Steps {
			list = append(list, s.Peer)
		}
		return list
	}
	for rank, want := range map[int][]int{2: {1, 5, 10}, 1: {2, 0, 3, 4}, 5: {2, 6, 7, 8}, 10: {2, 9}, 9: {10},
		0: {1}} {
		if got := peers(rank); !slices.Equal(got, want) {
			t.Errorf("rank %d exchanges with %v, want %v", rank, got, want)
		}
	}
}

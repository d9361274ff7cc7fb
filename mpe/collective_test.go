package mpe_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/internal/testkit/race"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpe/colltest"
)

// runCases makes all calls on every rank, one after the other.
func runCases(t *testing.T, engines []*mpe.Engine, cases []*colltest.Case) {
	t.Helper()
	var ranks []mpe.Device
	for _, e := range engines {
		ranks = append(ranks, e)
	}
	if err := colltest.Run(ranks, cases, 10*time.Minute); err != nil {
		t.Fatal(err)
	}
}

func TestCollectives(t *testing.T) {
	for _, ranks := range []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 32, 64} {
		if ranks > 17 && testing.Short() || ranks > 9 && ranks != 17 && race.Enabled {
			continue
		}
		t.Run(fmt.Sprint(ranks), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newExtended(t, ranks, nil)
				defer c.close()
				runCases(t, c.engines, colltest.AllCases(ranks, []int{0, ranks / 2, ranks - 1}, []int{0, 1, 5, 1200}, 0))
			})
		})
	}
}

// TestCollectivesRendezvous runs calls without eager messages, so that every message is announced first.
func TestCollectivesRendezvous(t *testing.T) {
	for _, ranks := range []int{2, 3, 6, 9} {
		synctest.Test(t, func(t *testing.T) {
			c := newExtended(t, ranks, func(x *extended.Config) { x.EagerLimit, x.MaxPayload = -1, 1000 })
			defer c.close()
			runCases(t, c.engines, colltest.AllCases(ranks, []int{0, ranks - 1}, []int{1, 5, 3000}, 0))
		})
	}
}

// TestCollectiveOperations checks that every reducing algorithm has, for every operation on every type, the result
// of combining the operands in the order of ranks. The numbers are small integers, so that the order of
// floating-point additions does not matter.
func TestCollectiveOperations(t *testing.T) {
	for _, ranks := range []int{3, 4} {
		synctest.Test(t, func(t *testing.T) {
			c := newExtended(t, ranks, nil)
			defer c.close()
			tag := 1
			for of := op.Sum; of <= op.MinLoc; of++ {
				for typ := op.Int8; typ <= op.Float64Loc; typ++ {
					f, err := op.Lookup(of, typ)
					if errors.Is(err, op.ErrUndefined) {
						continue
					}
					for _, collective := range []coll.Collective{coll.Allreduce, coll.Scan} {
						for _, a := range coll.Algorithms(collective) {
							if a.Shares { // these ranks have no shared buffers
								continue
							}
							operate(t, c, a, of, typ, f, tag)
							tag++
						}
					}
				}
			}
			if tag < 400 {
				t.Errorf("only %d calls", tag)
			}
		})
	}
}

// operate makes one call on all ranks, and compares the results.
func operate(t *testing.T, c *cluster, a *coll.Algorithm, of op.Op, typ op.Type, f op.Func, tag int) {
	t.Helper()
	ranks, size := len(c.engines), typ.Size()
	const count = 5
	var ops []mpe.Op
	var want []byte
	recv, wants := make([][]byte, ranks), make([][]byte, ranks)
	for r, e := range c.engines {
		send := numbersOf(typ, r, count)
		if r == 0 {
			want = bytes.Clone(send)
		} else { // want = want ∘ send
			next := bytes.Clone(send)
			f(next, want, next)
			want = next
		}
		wants[r] = want
		recv[r] = make([]byte, count*size)
		x := collective.Operation{Call: coll.Call{Collective: a.Collective, Rank: r, Ranks: ranks, Bytes: count * size,
			Elem: size},
			Comm: 1, Tag: tag, Send: send, Recv: recv[r], Op: of, Type: typ, Algorithm: a.Name}
		for m := range ranks {
			x.Members = append(x.Members, m)
		}
		o, err := e.StartCollective(&x)
		if err != nil {
			t.Fatalf("%v by %s, %v of %v: %v", a.Collective, a.Name, of, typ, err)
		}
		ops = append(ops, o)
	}
	finish(t, ops...)
	for r := range ranks {
		expected := want
		if a.Collective == coll.Scan {
			expected = wants[r]
		}
		if !bytes.Equal(recv[r], expected) {
			t.Errorf("%v by %s, %v of %v: rank %d has %x, want %x", a.Collective, a.Name, of, typ, r, recv[r], expected)
		}
	}
}

// numbersOf returns numbers of a type: 1 to 3, different on each rank.
func numbersOf(typ op.Type, rank, count int) []byte {
	b := make([]byte, count*typ.Size())
	for i := range count {
		at := b[i*typ.Size():]
		n := byte(1 + (rank+i)%3)
		switch typ {
		case op.Float32, op.Complex64, op.Float32Loc: // 1, 2 or 3 as bits
			copy(at, [][]byte{{0, 0, 0x80, 0x3f}, {0, 0, 0, 0x40}, {0, 0, 0x40, 0x40}}[n-1])
		case op.Float64, op.Complex128, op.Float64Loc:
			copy(at[6:], [][]byte{{0xf0, 0x3f}, {0, 0x40}, {0x08, 0x40}}[n-1])
		default:
			at[0] = n
		}
		switch typ { // the index of a pair
		case op.Int16Loc, op.Int32Loc, op.Float32Loc:
			at[4] = byte(rank)
		case op.Int64Loc, op.Float64Loc:
			at[8] = byte(rank)
		}
	}
	return b
}

// begin posts a rank's call, which must succeed.
func begin(t *testing.T, c *colltest.Case, e *mpe.Engine, tag int) mpe.Op {
	t.Helper()
	o, err := c.Start(e, tag)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// finish waits for operations that must succeed.
func finish(t *testing.T, ops ...mpe.Op) {
	t.Helper()
	for i, o := range ops {
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		_, err := o.Await(ctx)
		stop()
		if err != nil {
			t.Fatalf("operation %d: %v", i, err)
		}
		o.Free()
	}
}

// TestCollectivesThroughLoss runs calls while the network loses 5 % of the packets and delivers 5 % twice, the
// second time late.
func TestCollectivesThroughLoss(t *testing.T) {
	for _, ranks := range []int{2, 5, 8} {
		synctest.Test(t, func(t *testing.T) {
			c := newExtended(t, ranks, func(x *extended.Config) { x.EagerLimit, x.MaxPayload = 2000, 1300 })
			defer c.close()
			var mu sync.Mutex
			rng := rand.New(rand.NewPCG(uint64(ranks), 5))
			c.net.SetHook(func(_, _ int, _ []byte) []time.Duration {
				mu.Lock()
				defer mu.Unlock()
				late := time.Duration(rng.IntN(100)) * time.Microsecond
				switch x := rng.IntN(100); {
				case x < 5:
					return nil
				case x < 10:
					return []time.Duration{late, 10 * late}
				}
				return []time.Duration{late}
			})
			runCases(t, c.engines, colltest.AllCases(ranks, []int{0, ranks - 1}, []int{1, 2500}, 0))
		})
	}
}

// TestCallsOverlap checks that overlapping calls are distinguished by number, whatever the order of waiting.
func TestCallsOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ranks, calls = 4, 20
		c := newExtended(t, ranks, nil)
		defer c.close()
		var cases []*colltest.Case
		ops := make([][]mpe.Op, ranks)
		for i := range calls {
			x := colltest.NewCase([]coll.Collective{coll.Allreduce, coll.Bcast, coll.Barrier, coll.Alltoall}[i%4], "",
				ranks, i%ranks, 1+i*i*10)
			cases = append(cases, x)
		}
		for r, e := range c.engines { // in succession: the first calls wait for the agreement of the members
			for i, x := range cases {
				ops[r] = append(ops[r], begin(t, x, e, i+1))
			}
		}
		for r := range c.engines {
			slices.Reverse(ops[r])
			finish(t, ops[r]...)
			for _, x := range cases {
				if err := x.Check(r); err != nil {
					t.Error(err)
				}
			}
		}
	})
}

func BenchmarkBarrierInMemory(b *testing.B) {
	engines := newExtendedWith(b, 2, nil, nil)
	defer engines.close()
	done := make(chan error)
	call := colltest.NewCase(coll.Barrier, "dissemination", 2, 0, 0)
	run := func(e *mpe.Engine, n int) error {
		for i := range n {
			o, err := call.Start(e, i+1)
			if err != nil {
				return err
			}
			if _, err := o.Await(b.Context()); err != nil {
				return err
			}
			o.Free()
		}
		return nil
	}
	b.ReportAllocs()
	go func() { done <- run(engines.engines[1], b.N) }()
	if err := run(engines.engines[0], b.N); err != nil {
		b.Fatal(err)
	}
	if err := <-done; err != nil {
		b.Fatal(err)
	}
}

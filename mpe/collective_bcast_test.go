package mpe_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpe/colltest"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// TestAtomicIsAllOrNothing checks that no byte of an atomic broadcast is sent before the last rank is ready,
// and that all ranks get the data afterwards.
func TestAtomicIsAllOrNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newExtended(t, 5, func(x *extended.Config) { x.EagerLimit, x.MaxPayload = -1, 500 })
		defer c.close()
		runCases(t, c.engines, []*colltest.Case{colltest.NewCase(coll.Barrier, "", 5, 0, 0)})
		var pairs sync.Map
		count := 0
		c.net.SetHook(func(from, to int, b []byte) []time.Duration {
			if h, _, d := protocol.ParseExtended(b); d.OK() && h.Type == protocol.Data {
				pairs.Store([2]int{from, to}, true)
				count++
			}
			return []time.Duration{0}
		})
		call := colltest.NewCase(coll.Bcast, "atomic", 5, 0, 20_000)
		var ops []mpe.Op
		for _, r := range []int{0, 1, 2, 4} { // not rank 3, in the middle
			ops = append(ops, begin(t, call, c.engines[r], 2))
		}
		time.Sleep(time.Minute)
		if count > 0 {
			t.Errorf("%d packets of data before rank 3 is ready", count)
		}
		ops = append(ops, begin(t, call, c.engines[3], 2))
		finish(t, ops...)
		for r := range 5 {
			if err := call.Check(r); err != nil {
				t.Error(err)
			}
		}
		for r := range 4 {
			if _, ok := pairs.Load([2]int{r, r + 1}); !ok {
				t.Errorf("no data from rank %d to rank %d", r, r+1)
			}
		}
	})
}

// TestForwardCutsThrough checks that a middle rank forwards received bytes before the message is complete.
func TestForwardCutsThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newExtended(t, 3, func(x *extended.Config) { x.EagerLimit, x.MaxPayload = -1, 500 })
		defer c.close()
		runCases(t, c.engines, []*colltest.Case{colltest.NewCase(coll.Barrier, "", 3, 0, 0)})
		first, last := time.Time{}, time.Time{}
		c.net.SetHook(func(from, to int, b []byte) []time.Duration {
			h, payload, d := protocol.ParseExtended(b)
			if !d.OK() || h.Type != protocol.Data {
				return []time.Duration{time.Millisecond}
			}
			if from == 1 && first.IsZero() {
				first = time.Now()
			}
			at := time.Millisecond * time.Duration(10+int(h.Offset)/500) // in succession
			if from == 0 && int(h.Offset)+len(payload) == 80_000 {
				last = time.Now().Add(at)
			}
			return []time.Duration{at}
		})
		call := colltest.NewCase(coll.Bcast, "atomic", 3, 0, 20_000)
		call.Call.Segment = 1000
		var ops []mpe.Op
		for _, e := range c.engines {
			ops = append(ops, begin(t, call, e, 2))
		}
		finish(t, ops...)
		if first.IsZero() || !first.Before(last) {
			t.Errorf("rank 1 sends from %v on, and has all at %v", first, last)
		}
		for r := range 3 {
			if err := call.Check(r); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestFlowIsAborted checks that a flow that ends in the middle ends for all ranks after it.
func TestFlowIsAborted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newExtended(t, 4, func(x *extended.Config) { x.EagerLimit, x.MaxPayload, x.Window = -1, 500, 4 })
		defer c.close()
		runCases(t, c.engines, []*colltest.Case{colltest.NewCase(coll.Barrier, "", 4, 0, 0)})
		c.net.SetHook(func(from, to int, b []byte) []time.Duration {
			return []time.Duration{5 * time.Millisecond}
		})
		call := colltest.NewCase(coll.Bcast, "atomic", 4, 0, 50000)
		var ops []mpe.Op
		for _, e := range c.engines {
			ops = append(ops, begin(t, call, e, 2))
		}
		time.Sleep(200 * time.Millisecond)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := ops[1].Await(ended); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		for _, r := range []int{2, 3} {
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			if _, err := ops[r].Await(ctx); !errors.Is(err, extended.ErrAborted) ||
				!errors.Is(err, collective.ErrCallFailed) {
				t.Errorf("rank %d: %v", r, err)
			}
			stop()
		}
		if _, err := ops[0].Await(t.Context()); !errors.Is(err, collective.ErrCallFailed) ||
			errors.Is(err, extended.ErrAborted) {
			t.Errorf("rank 0: %v", err) // it gets the abort
		}
		runCases(t, c.engines, []*colltest.Case{colltest.NewCase(coll.Bcast, "binomial", 4, 0, 50)})
	})
}

// TestOrderGoesByStatus checks that the root orders free ranks before ranks that have reported data to send.
func TestOrderGoesByStatus(t *testing.T) {
	for _, bytes := range []int{4, 4000, 40_000, 80_000} {
		synctest.Test(t, func(t *testing.T) {
			c := newExtendedWith(t, 5, func(x *extended.Config) { x.EagerLimit = 2000 },
				func(cfg *mpe.Config) { cfg.Collectives.Order = coll.OrderByLeft })
			defer c.close()
			runCases(t, c.engines, []*colltest.Case{colltest.NewCase(coll.Barrier, "", 5, 0, 0)})
			var mu sync.Mutex
			var hops [][2]int
			c.net.SetHook(func(from, to int, b []byte) []time.Duration {
				mu.Lock()
				defer mu.Unlock()
				if h, payload, d := protocol.ParseExtended(b); d.OK() && h.Type == protocol.Data &&
					int(h.Offset)+len(payload) == int(h.Length) && int(h.Length) == bytes {
					hops = append(hops, [2]int{from, to})
				}
				return []time.Duration{0}
			})
			bcast := func(tag int, want ...int) {
				t.Helper()
				hops = nil
				call := colltest.NewCase(coll.Bcast, "atomic", 5, 0, bytes/4)
				var ops []mpe.Op
				for _, e := range c.engines {
					ops = append(ops, begin(t, call, e, tag))
				}
				finish(t, ops...)
				for r := range 5 {
					if err := call.Check(r); err != nil {
						t.Error(err)
					}
				}
				order := []int{0}
				for _, h := range hops {
					if h[0] == order[len(order)-1] {
						order = append(order, h[1])
					}
				}
				if !slices.Equal(order, want) {
					t.Errorf("%d bytes: the order is %v, want %v: %v", bytes, order, want, hops)
				}
				synctest.Wait() // for reports
			}
			bcast(2, 0, 1, 2, 3, 4)
			busy := start(t, c.engines[1], mpe.Operation{Kind: mpe.OpSend, Peer: 4, Buf: make([]byte, 100_000)})
			less := start(t, c.engines[2], mpe.Operation{Kind: mpe.OpSendSync, Peer: 4, Buf: make([]byte, 600)})
			bcast(3, 0, 1, 2, 3, 4) // they report now,
			bcast(4, 0, 1, 2, 3, 4) // the root announces the order,
			bcast(5, 0, 1, 2, 3, 4) // and all have it
			bcast(6, 0, 3, 4, 2, 1)
			bcast(7, 0, 3, 4, 2, 1)
			for i, n := range []int{100_000, 600} {
				if _, err := c.engines[4].Recv(t.Context(), i+1, make([]byte, n), mpe.Options{}); err != nil {
					t.Fatal(err)
				}
			}
			finish(t, busy, less)
			bcast(8, 0, 3, 4, 2, 1) // and now that they are free
			bcast(9, 0, 3, 4, 2, 1)
			bcast(10, 0, 3, 4, 2, 1)
			bcast(11, 0, 1, 2, 3, 4)
			if s := c.engines[0].Snapshot(); s.Unexpected != 0 {
				t.Errorf("%d unexpected messages", s.Unexpected)
			}
		})
	}
}

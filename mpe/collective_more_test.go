package mpe_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpe/colltest"
	"github.com/zrlmpi/zrlmpid/protocol"
)

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

// TestCollectiveOfAUsersOperation checks that a user's function is called without the engine's lock, in the
// order of ranks.
func TestCollectiveOfAUsersOperation(t *testing.T) {
	const ranks = 5
	synctest.Test(t, func(t *testing.T) {
		c := newExtended(t, ranks, nil)
		defer c.close()
		// Elements are ranges of ranks: two can be joined only if one follows the other.
		join := func(e *mpe.Engine) func(in, inout []byte) error {
			return func(in, inout []byte) error {
				e.Snapshot() // this acquires the engine's lock
				for i := 0; i < len(in); i += 2 {
					if in[i+1]+1 != inout[i] {
						inout[i], inout[i+1] = 0xff, 0xff
						continue
					}
					inout[i] = in[i]
				}
				return nil
			}
		}
		for _, of := range []coll.Collective{coll.Reduce, coll.Allreduce, coll.Scan} {
			for _, a := range coll.Algorithms(of) {
				call := coll.Call{Collective: of, Ranks: ranks, Root: 2, Bytes: 4, Elem: 2, Ordered: true}
				if a.CheckSupport(call) != nil {
					continue
				}
				var ops []mpe.Op
				recv := make([][]byte, ranks)
				for r, e := range c.engines {
					call.Rank = r
					recv[r] = make([]byte, 4)
					o, err := e.StartCollective(&collective.Operation{Call: call, Members: []int{0, 1, 2, 3, 4},
						Comm: 1, Tag: 1,
						Send: []byte{byte(r), byte(r), byte(r), byte(r)}, Recv: recv[r], User: join(e),
						Algorithm: a.Name})
					if err != nil {
						t.Fatal(err)
					}
					ops = append(ops, o)
				}
				finish(t, ops...)
				for r := range ranks {
					want := []byte{0, ranks - 1, 0, ranks - 1}
					switch {
					case of == coll.Reduce && r != 2:
						continue
					case of == coll.Scan:
						want = []byte{0, byte(r), 0, byte(r)}
					}
					if !bytes.Equal(recv[r], want) {
						t.Errorf("%v by %s: rank %d has %v", of, a.Name, r, recv[r])
					}
				}
			}
		}
	})
}

// TestAbandonedWhileComputing checks that a caller whose context is done while the user's function is using the
// buffers gets the buffers back when the function returns.
func TestAbandonedWhileComputing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newExtended(t, 2, nil)
		defer c.close()
		computing, goOn := make(chan struct{}), make(chan struct{})
		var ops []mpe.Op
		returned := false
		for r, e := range c.engines {
			o, err := e.StartCollective(&collective.Operation{
				Call:    coll.Call{Collective: coll.Reduce, Rank: r, Ranks: 2, Bytes: 1},
				Members: []int{0, 1}, Comm: 1, Tag: 1, Send: []byte{1}, Recv: make([]byte, 1),
				User: func(in, inout []byte) error {
					close(computing)
					<-goOn
					returned = true
					return nil
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			ops = append(ops, o)
		}
		<-computing
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		go func() {
			synctest.Wait()
			close(goOn)
		}()
		if _, err := ops[0].Await(ctx); err != nil && !errors.Is(err, context.Canceled) || !returned {
			t.Errorf("%v; the function has returned: %v", err, returned)
		}
		finish(t, ops[1])
	})
}

// TestAbandonedCall checks that the error of a call that times out names the awaited rank and the step, that
// its buffers are released, and that the next call works.
func TestAbandonedCall(t *testing.T) {
	for _, algorithm := range []string{"flat", "binomial", "chain", "atomic", "scatter-allgather"} {
		synctest.Test(t, func(t *testing.T) {
			c := newExtended(t, 4, func(x *extended.Config) { x.EagerLimit = 100 })
			defer c.close()
			call := colltest.NewCase(coll.Bcast, algorithm, 4, 0, 20_000)
			runCases(t, c.engines, []*colltest.Case{call}) // reach agreement first
			call = colltest.NewCase(coll.Bcast, algorithm, 4, 0, 20_000)
			var ops []mpe.Op
			for _, r := range []int{1, 2, 3} { // not the root
				ops = append(ops, begin(t, call, c.engines[r], 2))
			}
			synctest.Wait()
			if s := c.engines[1].Snapshot(); len(s.Calls) != 1 || !slices.Contains(s.Calls[0].WaitsFor, 0) ||
				!strings.Contains(s.Calls[0].Text, "Bcast by "+algorithm+", begun ") ||
				!strings.Contains(s.Calls[0].Text, "waits for rank") {
				t.Errorf("%s: calls in progress: %+v", algorithm, s.Calls)
			}
			time.Sleep(time.Second)
			if waits := c.engines[1].Waits(time.Second); len(waits) == 0 ||
				!strings.HasSuffix(waits[0].Text(), ", in Bcast by "+algorithm) {
				t.Errorf("%s: waits: %+v", algorithm, waits)
			}
			for i, o := range ops {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				_, err := o.Await(ctx)
				cancel()
				var step *collective.StepError
				var wait *mpe.WaitError
				if i > 0 { // rank 1 sends them an abort
					if !errors.Is(err, collective.ErrCallFailed) {
						t.Errorf("%s, rank %d: %v", algorithm, i+1, err)
					}
					o.Free()
					continue
				}
				if !errors.As(err, &step) || !errors.As(err, &wait) || !errors.Is(err, context.DeadlineExceeded) ||
					step.Collective != coll.Bcast || step.Algorithm != algorithm || step.Peer < 0 || step.Peer == i+1 ||
					!strings.Contains(err.Error(), "Bcast by "+algorithm+", step 1, ") {
					t.Errorf("%s, rank %d: %v", algorithm, i+1, err)
				}
				o.Free()
			}
			if s := c.engines[1].Snapshot(); len(s.Calls) != 0 || s.Posted != 0 || s.Unexpected != 0 ||
				s.Collectives[len(s.Collectives)-1].Failures != 1 {
				t.Errorf("%s: left over: %+v, %d posted, %d unexpected", algorithm, s.Calls, s.Posted, s.Unexpected)
			}
			next := colltest.NewCase(coll.Bcast, algorithm, 4, 1, 1000)
			ops = ops[:0]
			for _, e := range c.engines {
				ops = append(ops, begin(t, next, e, 3))
			}
			finish(t, ops...)
			for r := range 4 {
				if err := next.Check(r); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestSilentMember checks that a waiting first call names exactly the members from which nothing was ever received.
func TestSilentMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newExtended(t, 3, nil)
		call := colltest.NewCase(coll.Barrier, "", 3, 0, 0)
		ops := []mpe.Op{begin(t, call, c.engines[0], 2), begin(t, call, c.engines[1], 2)}
		time.Sleep(time.Second)
		synctest.Wait()
		for rank, e := range c.engines[:2] { // rank 1 has sent rank 2 a message of the call, and got an ACK
			s := e.Snapshot()
			if len(s.Calls) != 1 || strings.Contains(s.Calls[0].Text,
				"no packet was ever received from rank 2") != (rank == 0) {
				t.Errorf("rank %d: %+v", rank, s.Calls)
			}
		}
		for _, o := range ops {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if _, err := o.Await(ctx); err == nil {
				t.Error("the call is done without rank 2")
			}
			cancel()
		}
		c.close()
	})
}

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

func TestCollectiveErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newExtended(t, 2, nil)
		defer c.close()
		good := collective.Operation{Call: coll.Call{Collective: coll.Allreduce, Ranks: 2, Bytes: 8, Elem: 4},
			Members: []int{0, 1}, Comm: 1, Tag: 1,
			Send: make([]byte, 8), Recv: make([]byte, 8), Op: op.Sum, Type: op.Int32}
		for name, test := range map[string]struct {
			change func(*collective.Operation)
			want   error
		}{
			"members":   {func(x *collective.Operation) { x.Members = []int{0} }, coll.ErrCall},
			"not mine":  {func(x *collective.Operation) { x.Members = []int{1, 0} }, coll.ErrCall},
			"rank":      {func(x *collective.Operation) { x.Members = []int{0, 2} }, mpe.ErrRank},
			"token":     {func(x *collective.Operation) { x.Call.Token = 5 }, coll.ErrCall},
			"type":      {func(x *collective.Operation) { x.Type = op.Int64 }, coll.ErrCall},
			"operation": {func(x *collective.Operation) { x.Op, x.Type = op.BAnd, op.Float32 }, op.ErrUndefined},
			"length":    {func(x *collective.Operation) { x.Call.Bytes = 7 }, coll.ErrCall},
			"algorithm": {func(x *collective.Operation) { x.Algorithm = "magic" }, coll.ErrCall},
			"not fit":   {func(x *collective.Operation) { x.Algorithm = "ring"; x.Call.Ordered = true }, coll.ErrCall},
		} {
			x := good
			test.change(&x)
			if _, err := c.engines[0].StartCollective(&x); !errors.Is(err, test.want) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if s := c.engines[0].Snapshot(); len(s.Calls) != 0 || s.Posted != 0 {
			t.Errorf("%+v", s.Calls)
		}
		// A buffer that is too short is detected, too, but late.
		x := good
		x.Recv = nil
		o, err := c.engines[0].StartCollective(&x)
		if err == nil {
			y := good
			y.Call.Rank = 1
			o1, err := c.engines[1].StartCollective(&y)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := o.Await(t.Context()); !errors.Is(err, coll.ErrCall) {
				t.Errorf("no buffer: %v", err)
			}
			ctx, stop := context.WithTimeout(t.Context(), time.Second)
			defer stop()
			o1.Await(ctx)
		}
	})
}

// TestCollectiveMismatch checks that the error reports if the calls of other ranks have other lengths.
func TestCollectiveMismatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newExtended(t, 2, nil)
		defer c.close()
		a, b := colltest.NewCase(coll.Bcast, "binomial", 2, 0, 3), colltest.NewCase(coll.Bcast, "binomial", 2, 0, 5)
		x, y := begin(t, a, c.engines[0], 1), begin(t, b, c.engines[1], 1)
		finish(t, x)
		if _, err := y.Await(t.Context()); !errors.Is(err, collective.ErrMismatch) {
			t.Errorf("%v", err)
		}
	})
}

// TestCloseEndsCalls checks that a closing engine ends its calls.
func TestCloseEndsCalls(t *testing.T) {
	for _, agreed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := newExtended(t, 3, nil)
			defer c.close()
			if agreed {
				runCases(t, c.engines, []*colltest.Case{colltest.NewCase(coll.Barrier, "", 3, 0, 0)})
			}
			o := begin(t, colltest.NewCase(coll.Allreduce, "", 3, 0, 10), c.engines[0], 2)
			ctx, stop := context.WithTimeout(t.Context(), time.Second)
			defer stop()
			c.engines[0].Close(ctx)
			if _, err := o.Await(t.Context()); !errors.Is(err, mpe.ErrClosed) {
				t.Errorf("agreed %v: %v", agreed, err)
			}
		})
	}
}

// TestForgedStatus checks that a forged report is harmless. A report is a message without payload, and honest
// peers send nothing else.
func TestForgedStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newExtended(t, 2, nil)
		defer c.close()
		for _, n := range []int{0, 5, 100_000} {
			o := start(t, c.engines[1],
				mpe.Operation{Kind: mpe.OpSendSync, Peer: 0, Comm: 1<<32 - 1, Tag: 7, Buf: make([]byte, n)})
			finish(t, o)
		}
		if s := c.engines[0].Snapshot(); s.Unexpected != 0 {
			t.Errorf("%d unexpected messages", s.Unexpected)
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

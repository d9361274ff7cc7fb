package mpe_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpe/colltest"
)

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

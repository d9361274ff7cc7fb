package mpe_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpe/colltest"
)

// inComm makes calls in a separate communicator.
type inComm struct {
	mpe.Device
	comm uint32
}

func (d inComm) StartCollective(c *collective.Operation) (mpe.Op, error) {
	x := *c
	x.Comm = d.comm
	return d.Device.StartCollective(&x)
}

// communicator returns all ranks in a communicator.
func (c *cluster) communicator(comm uint32) (devices []mpe.Device) {
	for _, e := range c.engines {
		devices = append(devices, inComm{e, comm})
	}
	return devices
}

// post posts a call of a rank.
func post(t *testing.T, c *colltest.Case, d mpe.Device, tag int) mpe.Op {
	t.Helper()
	o, err := c.Start(d, tag)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// all posts a call on all ranks, and waits until it ends.
func all(t *testing.T, c *colltest.Case, devices []mpe.Device, tag int) {
	t.Helper()
	var ops []mpe.Op
	for _, d := range devices {
		ops = append(ops, post(t, c, d, tag))
	}
	finish(t, ops...)
	for r := range devices {
		if err := c.Check(r); err != nil {
			t.Error(err)
		}
	}
}

// outcome waits for a call that must end by itself.
func outcome(t *testing.T, o mpe.Op) error {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Hour)
	defer stop()
	_, err := o.Await(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it got no abort: %v", err)
	}
	o.Free()
	return err
}

// abortCall ends a call for its caller.
func abortCall(t *testing.T, o mpe.Op, after time.Duration) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), after)
	defer stop()
	if _, err := o.Await(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it should wait for others: %v", err)
	}
	o.Free()
}

// barrier returns a barrier of the given number of ranks.
func barrier(ranks int) *colltest.Case { return colltest.NewCase(coll.Barrier, "", ranks, 0, 0) }

// quit makes one rank's call time out while rank 0 has not made the call. All other ranks must fail or complete
// their part, and rank 0 must fail when it makes the call.
func quit(t *testing.T, c *cluster, x *colltest.Case, comm uint32) {
	t.Helper()
	ranks, middle := len(c.engines), len(c.engines)/2
	devices := c.communicator(comm)
	all(t, barrier(ranks), devices, 1) // reach agreement first
	name := fmt.Sprintf("%v by %q of %d bytes", x.Call.Collective, x.Algorithm, x.Call.Bytes)
	ops := map[int]mpe.Op{}
	for r := 1; r < ranks; r++ {
		ops[r] = post(t, x, devices[r], 2)
	}
	abortCall(t, ops[middle], time.Second)
	delete(ops, middle)
	begun := time.Now()
	failed := 0
	judge := func(r int, err error) {
		var aborted *collective.CallFailedError
		switch {
		case err == nil:
			if err := x.Check(r); err != nil {
				t.Error(err)
			}
			return
		case errors.As(err, &aborted):
			want := collective.CallFailedError{Rank: middle, Collective: x.Call.Collective, Comm: comm, Number: 2,
				Cause: collective.CauseTimeout}
			if *aborted != want || !errors.Is(err, collective.ErrCallFailed) {
				t.Errorf("%s, rank %d: %v", name, r, err)
			}
		case !errors.Is(err, collective.ErrCallFailed) || !errors.Is(err, extended.ErrAborted):
			t.Errorf("%s, rank %d: %v", name, r, err)
		}
		failed++
	}
	for r, o := range ops {
		judge(r, outcome(t, o))
	}
	if took := time.Since(begun); took > 5*time.Second { // in simulated time
		t.Errorf("%s: it took %v", name, took)
	}
	time.Sleep(5 * time.Second) // until rank 0 also has the abort, despite losses
	late := outcome(t, post(t, x, devices[0], 2))
	if late == nil {
		t.Errorf("%s: rank 0 comes late and succeeds", name)
	}
	judge(0, late)
	if x.Algorithm == "dissemination" && failed != ranks-1 {
		t.Errorf("%s: %d ranks have failed", name, failed)
	}
	for r, e := range c.engines {
		if s := e.Snapshot(); len(s.Calls) != 0 || s.Posted != 0 {
			t.Errorf("%s, rank %d: left over: %+v, %d posted", name, r, s.Calls, s.Posted)
		}
	}
}

// cases returns calls of all kinds that no rank in the middle can complete without rank 0.
func cases(ranks int) (list []*colltest.Case) {
	lengths := []int{1, 3000}
	if ranks > 6 {
		lengths = []int{300}
	}
	for _, x := range colltest.AllCases(ranks, []int{0, ranks / 2}, lengths, 0) {
		root := 0
		switch x.Call.Collective {
		case coll.Reduce, coll.Gather:
			root = ranks / 2
		}
		if x.Call.Root == root || x.Call.Collective == coll.Barrier {
			list = append(list, x)
		}
	}
	return list
}

func TestFailureAborts(t *testing.T) {
	for _, test := range []struct{ ranks, eager int }{{3, 0}, {4, -1}, {5, 0}, {8, 2000}, {16, -1}} {
		t.Run(fmt.Sprint(test.ranks, " ", test.eager), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newExtended(t, test.ranks, func(x *extended.Config) { x.EagerLimit = test.eager })
				defer c.close()
				list := cases(test.ranks)
				if len(list) < 30 {
					t.Errorf("only %d cases", len(list))
				}
				for i, x := range list {
					quit(t, c, x, uint32(i+1))
				}
				devices := c.communicator(1000)
				for i, x := range cases(test.ranks) {
					if i%8 == 0 {
						all(t, x, devices, i+1)
					}
				}
			})
		})
	}
}

// TestFailureAbortsThroughLoss checks that an abort is retransmitted until it is received.
func TestFailureAbortsThroughLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newExtended(t, 6, func(x *extended.Config) { x.EagerLimit = 2000 })
		defer c.close()
		var mu sync.Mutex
		rng := rand.New(rand.NewPCG(1, 5))
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
		for i, x := range cases(6) {
			quit(t, c, x, uint32(i+1))
		}
	})
}

package mpe_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// TestOnEnd checks that a polling caller is notified exactly once of the end of an operation, immediately if the
// operation is already done, and that the caller is not counted as waiting unless it sleeps.
func TestOnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newExtended(t, 2, nil)
		defer c.close()
		e := c.engines[0]
		var ends atomic.Int32
		var awaited atomic.Bool
		ended := make(chan struct{}, 1)
		then := func() {
			ends.Add(1)
			ended <- struct{}{}
		}
		r := start(t, e, mpe.Operation{Kind: mpe.OpRecv, Peer: 1, Buf: make([]byte, 8)}).(*mpe.Request)
		r.OnEnd(then, awaited.Load)
		if e.PollOnce(); e.Waiting() != 0 || ends.Load() != 0 {
			t.Errorf("%d wait, and %d are done", e.Waiting(), ends.Load())
		}
		slept := make(chan error)
		go func() { slept <- e.Sleep(t.Context(), ended, 0) }()
		if synctest.Wait(); e.Waiting() != 1 {
			t.Errorf("%d wait while one sleeps", e.Waiting())
		}
		for _, sleeps := range []bool{true, false} {
			awaited.Store(sleeps)
			if w := e.Snapshot().Peers[0].Receiving; w == nil || w.Awaited != sleeps {
				t.Errorf("awaited: %v, and the state has %+v", sleeps, w)
			}
		}
		if _, err := c.engines[1].Send(t.Context(), 0, make([]byte, 8), mpe.Options{}); err != nil {
			t.Fatal(err)
		}
		if err := <-slept; err != nil || ends.Load() != 1 || e.Waiting() != 0 {
			t.Errorf("%v: %d ends, and %d wait", err, ends.Load(), e.Waiting())
		}
		if _, over, err := r.Test(); !over || err != nil {
			t.Errorf("over %v, %v", over, err)
		}
		if r.OnEnd(then, nil); ends.Load() != 2 {
			t.Errorf("%d ends after one that is over", ends.Load())
		}
	})
}

package mpe_test

import (
	"testing"
	"testing/synctest"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/colltest"
)

// TestCalls checks that every operation counts as a call, even a receive that need not poll because its message was
// received before. From these calls, the poller knows that its rank is active, and does not let every packet wake it.
func TestCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newExtended(t, 2, nil)
		defer c.close()
		from, to := c.engines[0], c.engines[1]
		before := [2]uint32{from.Calls(), to.Calls()}
		const messages = 5
		for range messages {
			if _, err := from.Send(t.Context(), 1, make([]byte, 8), mpe.Options{}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if n := to.Depths().Unexpected; n != messages || to.Calls() != before[1] {
			t.Fatalf("%d messages were received, %d calls of the rank that receives them", n, to.Calls()-before[1])
		}
		for range messages {
			if _, err := to.Recv(t.Context(), 0, make([]byte, 8), mpe.Options{}); err != nil {
				t.Fatal(err)
			}
		}
		for rank, e := range c.engines {
			if n := e.Calls() - before[rank]; n != messages {
				t.Errorf("rank %d: %d calls, want %d", rank, n, messages)
			}
		}
		runCases(t, c.engines, []*colltest.Case{barrier(2)})
		for rank, e := range c.engines {
			if n := e.Calls() - before[rank]; n != messages+1 {
				t.Errorf("rank %d: %d calls after a collective one, want %d", rank, n, messages+1)
			}
		}
	})
}

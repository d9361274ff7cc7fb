package mpe_test

import (
	"testing"
	"testing/synctest"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// TestCountersAllocations checks that a scrape does not allocate per peer, whatever is waiting.
func TestCountersAllocations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ranks = 64
		c := newCluster(t, ranks, handshake.PeerRules{}, nil)
		defer c.close()
		e := c.engines[0]
		for peer := 1; peer < ranks; peer++ {
			start(t, e, mpe.Operation{Kind: mpe.OpSend, Peer: peer, Buf: make([]byte, 16)})
			start(t, e, mpe.Operation{Kind: mpe.OpRecv, Peer: peer, Buf: make([]byte, 16)})
		}
		synctest.Wait()
		waiting := 0
		allocations := testing.AllocsPerRun(10, func() {
			waiting = 0
			e.Counters(func(*state.RankCounters) {}, func(c *state.PeerCounters) {
				if c.OldestSend.Awaited == protocol.ClearToSend && c.OldestRecv.Awaited == protocol.SendRequest {
					waiting++
				}
			})
		})
		if waiting != ranks-1 || allocations > ranks/4 {
			t.Errorf("%v allocations, and %d peers with waits", allocations, waiting)
		}
	})
}

package shm

import (
	"testing"

	"github.com/zrlmpi/zrlmpid/internal/testkit/transporttest"
	"github.com/zrlmpi/zrlmpid/mpe"
)

// TestGone: either side reports that no process is its peer any more, once, and behind all that
// the peer has sent.
func TestGone(t *testing.T) {
	for gone := range 2 {
		m := transporttest.Map(t, 2)
		kept := transporttest.Start(t, listen(t, Config{Rank: 1 - gone, Map: m}))
		for range 2 {
			other := transporttest.Start(t, listen(t, Config{Rank: gone, Map: m}))
			other.WaitConnected(t, 1-gone)
			kept.WaitConnected(t, gone)
			first := transporttest.Packet(gone, 1-gone, 1, 5)
			other.SendAllPackets(t, 1-gone, []mpe.Packet{first})
			kept.WantPacket(t, gone, first)
			other.Close()
			kept.WaitGone(t, gone)
		}
	}
}

package tcp

import (
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/transport/transporttest"
)

// TestPeerGone checks that each side reports the end of its peer's process once, and after all packets from the
// peer. While the process exists, nothing is reported, whatever the reason for which a connection ends.
func TestPeerGone(t *testing.T) {
	bothWays(t, func(t *testing.T, listen listener) {
		for gone := range 2 {
			m := transporttest.Map(t, 2)
			kept := listen.start(t, Config{Rank: 1 - gone, Map: m, Profile: extended})
			for range 2 {
				other := listen.start(t, Config{Rank: gone, Map: m, Profile: extended})
				want(t, other, mpe.RxConnected, 1-gone)
				want(t, kept, mpe.RxConnected, gone)
				first := transporttest.Packet(gone, 1-gone, 1, 5)
				other.SendAllPackets(t, 1-gone, []mpe.Packet{first})
				kept.CheckPacket(t, gone, first)
				other.Close()
				kept.WaitGone(t, gone)
			}
		}
	})
}

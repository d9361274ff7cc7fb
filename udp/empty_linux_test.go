package udp

import (
	"net"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/transport/transporttest"
)

// TestEmptyDatagram checks that an empty datagram, which anybody can send, does not block the datagrams behind it while
// payload is expected from several peers.
func TestEmptyDatagram(t *testing.T) {
	m := transporttest.Map(t, 3)
	c, err := Listen(Config{Rank: 0, Map: m})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	peer, err := net.DialUDP("udp", net.UDPAddrFromAddrPort(m.Addr(1)), net.UDPAddrFromAddrPort(m.Addr(0)))
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	for _, b := range []string{"", "after it"} {
		if _, err := peer.Write([]byte(b)); err != nil {
			t.Fatal(err)
		}
	}
	var all mpe.Placements
	for rank := 1; rank <= 2; rank++ {
		all.Set(mpe.Placement{Peer: rank, Buf: make([]byte, 100)})
	}
	batch := make([]mpe.RxPacket, ringLen)
	for limit := time.Now().Add(2 * time.Second); time.Now().Before(limit); {
		n, err := c.Poll(batch, &all)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range batch[:n] {
			if string(p.Bytes)+string(p.Tail) == "after it" {
				return
			}
		}
	}
	t.Error("the datagram after the empty one does not arrive")
}

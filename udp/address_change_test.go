package udp

import (
	"net"
	"net/netip"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/transporttest"
)

// TestMove checks that packets to a peer that has moved are sent to its new address. Packets from the old address count
// as packets from an unknown peer, even if the last packet came from there.
func TestMove(t *testing.T) {
	eachSocket(t, func(t *testing.T, open func(Config) (*Conn, error)) {
		m := transporttest.Map(t, 3)
		next := transporttest.MapOf(t, m.Addr(0), transporttest.FreeAddr(t), m.Addr(2))
		c, err := open(Config{Rank: 0, Map: m})
		if err != nil {
			t.Fatal(err)
		}
		end := transporttest.Start(t, c)
		was, is, other := dial(t, m.Addr(1), m.Addr(0)), dial(t, next.Addr(1), m.Addr(0)), dial(t, m.Addr(2), m.Addr(0))
		from := func(conn net.Conn, want int) {
			t.Helper()
			write(t, conn, protocol.HeaderLen)
			if a := end.Next(t); a.Peer != want {
				t.Errorf("a packet from %v is from rank %d, want %d", a.SourceAddr, a.Peer, want)
			}
		}
		from(is, mpe.UnknownPeer)
		from(was, 1)
		move, err := c.Prepare(next)
		if err != nil {
			t.Fatal(err)
		}
		from(was, 1)
		move()
		from(was, mpe.UnknownPeer)
		from(is, 1)
		from(other, 2)
		if err := c.SendHeader(1, make([]byte, protocol.HeaderLen)); err != nil {
			t.Fatal(err)
		}
		if _, err := is.Read(make([]byte, 100)); err != nil {
			t.Error(err)
		}
	})
}

func TestMoveThatCannotBe(t *testing.T) {
	m := transporttest.Map(t, 2)
	c, err := Listen(Config{Rank: 0, Map: m})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for name, addrs := range map[string][]netip.AddrPort{
		"more ranks":  {m.Addr(0), m.Addr(1), transporttest.FreeAddr(t)},
		"its address": {transporttest.FreeAddr(t), m.Addr(1)},
	} {
		if _, err := c.Prepare(transporttest.MapOf(t, addrs...)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

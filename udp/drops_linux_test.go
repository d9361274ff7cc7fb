package udp

import (
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/transport/transporttest"
)

// TestDrops sends more datagrams than fit into the socket's buffer, and checks that all lost datagrams are counted.
func TestDrops(t *testing.T) {
	m := transporttest.Map(t, 2)
	c, err := Listen(Config{Rank: 0, Map: m, ReceiveBuffer: 4 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if n, ok := c.Drops(); n != 0 || !ok {
		t.Fatalf("a new socket has dropped %d, %v", n, ok)
	}
	peer := dial(t, m.Addr(1), m.Addr(0))
	const sent = 200
	for range sent {
		write(t, peer, 1000)
	}
	dropped, _ := c.Drops()
	if dropped == 0 {
		t.Fatal("none was dropped")
	}
	got := uint64(0)
	batch := make([]mpe.RxPacket, 64)
	for {
		n, err := c.Poll(batch, nil)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			break
		}
		got += uint64(n)
	}
	if again, ok := c.Drops(); again != dropped || !ok || got+again != sent {
		t.Errorf("of %d datagrams, %d came and %d were dropped (%d before)", sent, got, again, dropped)
	}
	c.Close()
	if n, ok := c.Drops(); ok {
		t.Errorf("a closed socket has dropped %d", n)
	}
}

func TestDropsDoNotWrapAround(t *testing.T) {
	var d dropSum
	d.add(1<<32 - 5)
	if got := d.add(10); got != 1<<32+10 {
		t.Errorf("%d", got)
	}
}

package xdp_test

import (
	"bytes"
	"encoding/binary"
	"net"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/transporttest"
	"github.com/zrlmpi/zrlmpid/udp"
	"github.com/zrlmpi/zrlmpid/udp/xdp"
)

// TestCorruptFlood sends more datagrams with wrong checksums than the path has frames, to a rank that does not read for
// a while.
func TestCorruptFlood(t *testing.T) {
	h := newHosts(t)
	h.resolve(t, false)
	m := newMap(t, false)
	c, err := h.listen(udp.Config{Rank: 0, Map: m, OpenPath: xdp.Open})
	if err != nil {
		t.Fatal(err)
	}
	var raw net.PacketConn
	h[1].Do(func() { raw, err = net.ListenPacket("ip4:udp", m.Addr(1).Addr().String()) })
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	datagram := make([]byte, 8+32)
	binary.BigEndian.PutUint16(datagram, m.Addr(1).Port())
	binary.BigEndian.PutUint16(datagram[2:], m.Addr(0).Port())
	binary.BigEndian.PutUint16(datagram[4:], uint16(len(datagram)))
	datagram[6], datagram[7] = 0xde, 0xad
	flood := func(n int) {
		for range n {
			if _, err := raw.WriteTo(datagram, &net.IPAddr{IP: m.Addr(0).Addr().AsSlice()}); err != nil {
				t.Fatal(err)
			}
		}
	}
	flood(10000)
	end := transporttest.Start(t, c)
	flood(10000)
	header := bytes.Repeat([]byte{0x96}, protocol.HeaderLen)
	s := h.dialFrom(t, m)
	for limit := time.Now().Add(transporttest.Timeout); time.Now().Before(limit); {
		if _, err := s.Write(header); err != nil {
			t.Fatal(err)
		}
		select {
		case got := <-end.RxPackets:
			if !bytes.Equal(got.Bytes, header) {
				t.Errorf("received %x", got.Bytes)
			}
			return
		case <-time.After(10 * time.Millisecond): // dropped because of the flood
		}
	}
	t.Errorf("nothing arrives any more: %+v", c.Path())
}

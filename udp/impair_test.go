package udp

import (
	"net/netip"
	"testing"

	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/impair"
	"github.com/zrlmpi/zrlmpid/transport/transporttest"
)

// TestImpaired checks that faults are injected into sent and received datagrams, by direction and type.
func TestImpaired(t *testing.T) {
	t.Setenv(EnvOffload, "auto")
	m := transporttest.Map(t, 2)
	var script impair.Script
	for _, text := range []string{"from 1 packet ACK nth 2 loss 100%", "to 1 packet ACK duplicate 100% late 1ms",
		"packet CLEAR_TO_SEND nth 1 delay 20ms"} {
		rule, err := impair.ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		script.Rules = append(script.Rules, rule)
	}
	im, err := impair.New(script, impair.Datagrams, []netip.Addr{m.Addr(0).Addr(), m.Addr(1).Addr()})
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]*transporttest.End
	for rank, cfg := range []Config{{Rank: 0, Map: m}, {Rank: 1, Map: m, Impair: im}} {
		c, err := Listen(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if o := c.Offload(); o.Off != (cfg.Impair != nil) {
			t.Errorf("rank %d: %+v", rank, o)
		}
		ends[rank] = transporttest.Start(t, c)
	}
	send := func(from int, kind protocol.Type, size uint32) {
		t.Helper()
		h := protocol.Header{Src: uint32(from), Dst: uint32(1 - from), Type: kind, Size: size}
		if err := ends[from].SendHeader(1-from, protocol.CloudFPGA.Append(nil, h)); err != nil {
			t.Fatal(err)
		}
	}
	want := func(at int, kind protocol.Type, size uint32) {
		t.Helper()
		p := ends[at].Next(t)
		if h, err := protocol.CloudFPGA.Decode(p.Bytes); err != nil || h.Type != kind || h.Size != size ||
			p.Peer != 1-at {
			t.Errorf("%v from %d, %v; want %v with size %d", h, p.Peer, err, kind, size)
		}
	}
	for size := range uint32(3) {
		send(1, protocol.Ack, size)
	}
	want(0, protocol.Ack, 0)
	want(0, protocol.Ack, 2)
	send(0, protocol.Ack, 5)
	want(1, protocol.Ack, 5)
	want(1, protocol.Ack, 5)
	for _, from := range []int{0, 1} {
		send(from, protocol.ClearToSend, 6) // will be overtaken
		send(from, protocol.SendRequest, 7)
		want(1-from, protocol.SendRequest, 7)
		want(1-from, protocol.ClearToSend, 6)
	}
}

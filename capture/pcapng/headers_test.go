package pcapng

import (
	"bytes"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
)

// TestHeaders: the headers are equal to the headers that gopacket builds.
func TestHeaders(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, net := range []string{"127.0.0.1 10.11.12.13", "fd00::1 2001:db8::ffff:1"} {
		var addrs [2]netip.Addr
		for i, s := range bytes.Fields([]byte(net)) {
			addrs[i] = netip.MustParseAddr(string(s))
		}
		for _, proto := range []byte{udpNumber, tcpNumber} {
			for range 2000 {
				h := headers{
					proto: proto, src: netip.AddrPortFrom(addrs[0], uint16(rng.Uint32())),
					dst: netip.AddrPortFrom(addrs[1], uint16(rng.Uint32())), seq: rng.Uint32(), ack: rng.Uint32(),
				}
				payload := make([]byte, rng.IntN([]int{3, 100, 3000, h.maxPayload() + 1}[rng.IntN(4)]))
				for i := range payload {
					payload[i] = byte(rng.Uint32())
				}
				cut := rng.IntN(len(payload) + 1)
				clear(payload[cut:])
				got := h.append(nil, payload[:cut], len(payload))
				if want := gopackets(t, &h, payload); !bytes.Equal(got, want[:len(got)]) {
					t.Fatalf("protocol %d, %d bytes:\n% x\n% x", proto, len(payload), got, want[:len(got)])
				}
			}
		}
	}
}

// gopackets returns the packet that gopacket builds.
func gopackets(t *testing.T, h *headers, payload []byte) []byte {
	t.Helper()
	src, dst := h.src.Addr().AsSlice(), h.dst.Addr().AsSlice()
	var network interface {
		gopacket.NetworkLayer
		gopacket.SerializableLayer
	} = &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: layers.IPProtocol(h.proto), SrcIP: src, DstIP: dst}
	if len(src) == 4 {
		network = &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocol(h.proto), SrcIP: src, DstIP: dst}
	}
	udp := &layers.UDP{SrcPort: layers.UDPPort(h.src.Port()), DstPort: layers.UDPPort(h.dst.Port())}
	tcp := &layers.TCP{
		SrcPort: layers.TCPPort(h.src.Port()), DstPort: layers.TCPPort(h.dst.Port()), Seq: h.seq, Ack: h.ack,
		ACK: true, PSH: true, Window: 65535,
	}
	var transport gopacket.SerializableLayer = udp
	if h.proto == tcpNumber {
		transport = tcp
	}
	_, _ = udp.SetNetworkLayerForChecksum(network), tcp.SetNetworkLayerForChecksum(network)
	buf := gopacket.NewSerializeBuffer()
	opts := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
	if err := gopacket.SerializeLayers(buf, opts, network, transport, gopacket.Payload(payload)); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

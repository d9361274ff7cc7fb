package layer_test

import (
	"bytes"
	"net"
	"strings"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/protocol/layer"
)

// frame builds an Ethernet frame with a ZRLMPI packet in UDP.
func frame(t testing.TB, l *layer.Layer, payload []byte) []byte {
	t.Helper()
	ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: net.IP{127, 0, 0, 1}, DstIP: net.IP{127, 0, 0, 2}}
	udp := &layers.UDP{SrcPort: protocol.Port, DstPort: protocol.Port}
	if err := udp.SetNetworkLayerForChecksum(ip); err != nil {
		t.Fatal(err)
	}
	eth := &layers.Ethernet{SrcMAC: make(net.HardwareAddr, 6), DstMAC: make(net.HardwareAddr, 6), EthernetType: layers.EthernetTypeIPv4}
	buf := gopacket.NewSerializeBuffer()
	all := []gopacket.SerializableLayer{eth, ip, udp}
	if l != nil {
		all = append(all, l)
	}
	all = append(all, gopacket.Payload(payload))
	if err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, all...); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestLayerRoundTrip(t *testing.T) {
	payload := []byte{1, 2, 3, 4, 5, 6, 7, 8}
	l := &layer.Layer{Header: protocol.Header{Dst: 1, Call: protocol.SendFloat, Type: protocol.Data, Size: 99}}
	pkt := gopacket.NewPacket(frame(t, l, payload), layers.LayerTypeEthernet, gopacket.Default)
	if e := pkt.ErrorLayer(); e != nil {
		t.Fatal(e.Error())
	}
	got, ok := pkt.Layer(layer.Type).(*layer.Layer)
	if !ok {
		t.Fatalf("port %d does not decode as ZRLMPI: %v", protocol.Port, pkt)
	}
	if got.Header != (protocol.Header{Dst: 1, Call: protocol.SendFloat, Type: protocol.Data, Size: 2}) || !bytes.Equal(got.Payload(), payload) {
		t.Errorf("got %v %x", got.Header, got.Payload())
	}
	if pkt.ApplicationLayer() == nil || pkt.ApplicationLayer().LayerType() != layer.Type {
		t.Error("it is not the application layer")
	}
}

func TestLayerOfContinuationPayload(t *testing.T) {
	pkt := gopacket.NewPacket(frame(t, nil, []byte("payload without a header of a message")), layers.LayerTypeEthernet, gopacket.Default)
	if e := pkt.ErrorLayer(); e != nil {
		t.Fatal(e.Error())
	}
	if pkt.Layer(layer.Type) != nil || pkt.Layer(gopacket.LayerTypePayload) == nil {
		t.Errorf("got %v", pkt)
	}
}

func TestLayerErrors(t *testing.T) {
	bad := protocol.CloudFPGA.Append(nil, protocol.Header{Type: protocol.Ack, Call: protocol.RecvInt})
	bad[20] = 1
	pkt := gopacket.NewPacket(frame(t, nil, bad), layers.LayerTypeEthernet, gopacket.Default)
	if pkt.ErrorLayer() == nil {
		t.Error("a non-zero reserved byte decodes")
	}
	pkt = gopacket.NewPacket(frame(t, nil, bad[:20]), layers.LayerTypeEthernet, gopacket.Default)
	if pkt.ErrorLayer() == nil || !pkt.Metadata().Truncated {
		t.Error("a truncated header is not reported as truncated")
	}
}

func TestLayerOfExtended(t *testing.T) {
	payload := []byte("five ")
	data := protocol.ExtHeader{Dst: 1, Type: protocol.Data, Flags: protocol.FlagEager | protocol.FlagRetransmit, Session: 7, PeerSession: 9, Number: 17, Acknowledged: 12, Message: 3, Tag: protocol.MaxExtTag, Length: 100000, Offset: 4096}
	extPackets := []protocol.ExtHeader{
		{Dst: 1, Type: protocol.SendRequest, Flags: protocol.FlagSync, Session: 7, PeerSession: 9, Number: 1, Acknowledged: 1, Message: 1, Comm: 2, Tag: 5, Length: 100001},
		data,
		{Src: 1, Call: protocol.RecvInt, Type: protocol.Ack, Flags: protocol.FlagHello, Session: 9},
		{Dst: ^uint32(0), Src: ^uint32(0), Call: protocol.Barrier, Type: protocol.Error, Flags: 63, Session: ^protocol.Session(0), PeerSession: ^protocol.Session(0), Number: ^uint32(0), Length: ^uint32(0), Clock: ^uint32(0)},
	}
	for _, h := range extPackets {
		l := &layer.Layer{Extended: &h}
		raw := frame(t, l, payload)
		pkt := gopacket.NewPacket(raw, layers.LayerTypeEthernet, gopacket.Default)
		if e := pkt.ErrorLayer(); e != nil {
			t.Fatal(e.Error())
		}
		got, ok := pkt.Layer(layer.Type).(*layer.Layer)
		if !ok || got.Extended == nil || *got.Extended != h || got.Header != h.Frame() || !bytes.Equal(got.Payload(), payload) {
			t.Errorf("%+v: got %+v", h, got)
		}
		// A corrupt one is reported.
		raw[len(raw)-len(payload)-1]++
		pkt = gopacket.NewPacket(raw, layers.LayerTypeEthernet, gopacket.Default)
		if e := pkt.ErrorLayer(); e == nil || !strings.Contains(e.Error().Error(), "checksum") {
			t.Errorf("%+v, corrupt: %v", h, pkt)
		}
	}
	whole := protocol.AppendExtended(nil, &data, payload)
	for name, cut := range map[string][]byte{"header": whole[:40], "payload": whole[:74]} {
		pkt := gopacket.NewPacket(frame(t, nil, cut), layers.LayerTypeEthernet, gopacket.Default)
		if pkt.ErrorLayer() == nil || !pkt.Metadata().Truncated {
			t.Errorf("a truncated %s is not reported as truncated", name)
		}
	}
	// A layer that is reused keeps nothing of the packet before.
	l := layer.Layer{}
	if err := l.DecodeFromBytes(whole, gopacket.NilDecodeFeedback); err != nil || l.Extended == nil {
		t.Fatal(err)
	}
	if err := l.DecodeFromBytes(protocol.CloudFPGA.Append(nil, protocol.Header{Type: protocol.Ack}), gopacket.NilDecodeFeedback); err != nil || l.Extended != nil {
		t.Errorf("%v, %v", l.Extended, err)
	}
	strict := layer.Layer{Profile: protocol.Extended}
	if err := strict.DecodeFromBytes(make([]byte, 72), gopacket.NilDecodeFeedback); err == nil {
		t.Error("zeros are a packet")
	}
}

func TestLayerInDecodingParser(t *testing.T) {
	var eth layers.Ethernet
	var ip layers.IPv4
	var udp layers.UDP
	var z layer.Layer
	var rest gopacket.Payload
	parser := gopacket.NewDecodingLayerParser(layers.LayerTypeEthernet, &eth, &ip, &udp, &z, &rest)
	var found []gopacket.LayerType
	raw := frame(t, &layer.Layer{Header: protocol.Header{Dst: 1, Type: protocol.SendRequest}}, nil)
	if err := parser.DecodeLayers(raw, &found); err != nil {
		t.Fatal(err)
	}
	if found[len(found)-1] != layer.Type || z.Type != protocol.SendRequest {
		t.Errorf("found %v, %v", found, z.Header)
	}
}

package wireshark_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// Captures written by the tests.

// packet is a packet to be written to a capture.
type packet struct {
	at       time.Duration
	src, dst string // an IP address, and a port unless it is protocol.Port
	payload  []byte
	// vlans lists the VLAN tags between the Ethernet and IP headers.
	vlans []uint16
	// tcp sends the payload on a TCP stream.
	tcp bool
	// cut is the number of bytes at the end of the packet that are not recorded.
	cut int
	// quoted wraps the packet in an ICMP error from its destination.
	quoted bool
}

// rank returns the address of a rank.
func rank(n uint32) string { return fmt.Sprintf("10.0.0.%d", n+1) }

func header(typ protocol.Type, src, dst uint32, call protocol.Call, size uint32) []byte {
	return protocol.CloudFPGA.Append(nil, protocol.Header{Type: typ, Src: src, Dst: dst, Call: call, Size: size})
}

// words returns n bytes of payload in which no word occurs twice.
func words(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8*13 + 1)
	}
	return b
}

// Packets of a message of INTs from rank 0 to rank 1.
func request() packet { return from(0, header(protocol.SendRequest, 0, 1, protocol.SendInt, 0)) }
func clearing() packet {
	return from(1, header(protocol.ClearToSend, 1, 0, protocol.RecvInt, 0))
}
func ack() packet { return from(1, header(protocol.Ack, 1, 0, protocol.RecvInt, 0)) }
func data(size uint32, payload []byte) packet {
	return from(0, append(header(protocol.Data, 0, 1, protocol.SendInt, size), payload...))
}

// bare returns a packet from rank 0 to rank 1 that has payload but no header.
func bare(payload []byte) packet { return from(0, payload) }

// from returns a packet from rank n, which is 0 or 1, to the other of these two ranks.
func from(n uint32, payload []byte) packet {
	return packet{src: rank(n), dst: rank(1 - n), payload: payload}
}

// later sets the delay of a packet after the previous one.
func (p packet) later(d time.Duration) packet { p.at = d; return p }

// edit returns the packet with bytes of its payload, from offset at on, replaced.
func (p packet) edit(at int, value ...byte) packet {
	p.payload = slices.Clone(p.payload)
	copy(p.payload[at:], value)
	return p
}

// write writes a capture of packets and returns its path. Packets are 100 µs apart by default.
func write(t *testing.T, packets ...packet) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "capture.pcap")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := pcapgo.NewWriter(f)
	if err := w.WriteFileHeader(65536, layers.LinkTypeEthernet); err != nil {
		t.Fatal(err)
	}
	at := time.Unix(1_700_000_000, 0)
	sequence := map[string]uint32{}
	for _, p := range packets {
		if p.at == 0 {
			p.at = 100 * time.Microsecond
		}
		at = at.Add(p.at)
		b := p.bytes(t, sequence)
		info := gopacket.CaptureInfo{Timestamp: at, CaptureLength: len(b) - p.cut, Length: len(b)}
		if err := w.WritePacket(info, b[:info.CaptureLength]); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// bytes encodes a packet. sequence holds the next sequence number of each TCP stream.
func (p packet) bytes(t *testing.T, sequence map[string]uint32) []byte {
	t.Helper()
	src, srcPort := endpoint(t, p.src)
	dst, dstPort := endpoint(t, p.dst)
	eth := &layers.Ethernet{SrcMAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, DstMAC: net.HardwareAddr{2, 0, 0, 0, 0, 2}}
	stack := []gopacket.SerializableLayer{eth}
	next := &eth.EthernetType
	for _, id := range p.vlans {
		*next = layers.EthernetTypeDot1Q
		tag := &layers.Dot1Q{VLANIdentifier: id}
		stack, next = append(stack, tag), &tag.Type
	}
	transport := layers.IPProtocolUDP
	if p.tcp {
		transport = layers.IPProtocolTCP
	}
	network, lay := ip(src, dst, transport)
	*next = lay
	inner := []gopacket.SerializableLayer{network}
	if p.tcp {
		key := p.src + ">" + p.dst
		tcp := &layers.TCP{SrcPort: layers.TCPPort(srcPort), DstPort: layers.TCPPort(dstPort), Seq: sequence[key] + 1,
			Ack: 1, ACK: true, PSH: true, Window: 65535}
		sequence[key] += uint32(len(p.payload))
		tcp.SetNetworkLayerForChecksum(network.(gopacket.NetworkLayer))
		inner = append(inner, tcp)
	} else {
		udp := &layers.UDP{SrcPort: layers.UDPPort(srcPort), DstPort: layers.UDPPort(dstPort)}
		udp.SetNetworkLayerForChecksum(network.(gopacket.NetworkLayer))
		inner = append(inner, udp)
	}
	inner = append(inner, gopacket.Payload(p.payload))
	if p.quoted {
		quote := serialize(t, inner...)
		outer, _ := ip(dst, src, layers.IPProtocolICMPv4)
		icmp := &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(layers.ICMPv4TypeDestinationUnreachable,
			layers.ICMPv4CodePort)}
		inner = []gopacket.SerializableLayer{outer, icmp, gopacket.Payload(quote)}
	}
	return serialize(t, append(stack, inner...)...)
}

func ip(src, dst net.IP, transport layers.IPProtocol) (gopacket.SerializableLayer, layers.EthernetType) {
	if src.To4() == nil {
		return &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: transport, SrcIP: src, DstIP: dst},
			layers.EthernetTypeIPv6
	}
	return &layers.IPv4{Version: 4, TTL: 64, Protocol: transport, SrcIP: src.To4(), DstIP: dst.To4()},
		layers.EthernetTypeIPv4
}

func serialize(t *testing.T, stack ...gopacket.SerializableLayer) []byte {
	t.Helper()
	buf := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true},
		stack...); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func endpoint(t *testing.T, s string) (net.IP, int) {
	t.Helper()
	host, portText, ok := strings.Cut(s, " ")
	port := protocol.Port
	if ok {
		if _, err := fmt.Sscan(portText, &port); err != nil {
			t.Fatal(err)
		}
	}
	addr := net.ParseIP(host)
	if addr == nil {
		t.Fatalf("%q is no address", s)
	}
	return addr, port
}

// expectExperts compares all expert infos. want maps the number of a frame to the expected names, separated by spaces.
func expectExperts(t *testing.T, frames []frame, want map[int]string) {
	t.Helper()
	for i, f := range frames {
		wanted := strings.Fields(want[i+1])
		slices.Sort(wanted)
		if got := f.experts(); !slices.Equal(got, wanted) {
			t.Errorf("frame %d, %s: expert infos are %v, want %v", i+1, f.one(t, "_ws.col.Info"), got, wanted)
		}
	}
	for n := range want {
		if n > len(frames) {
			t.Errorf("there is no frame %d", n)
		}
	}
}

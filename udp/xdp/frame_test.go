package xdp

import (
	"bytes"
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
)

var (
	hostMAC = net.HardwareAddr{2, 0, 0, 0, 0, 1}
	peerMAC = net.HardwareAddr{2, 0, 0, 0, 0, 2}
)

// pairs holds the addresses of a sender and a receiver, for both versions of IP.
var pairs = []struct{ from, to netip.AddrPort }{
	{netip.MustParseAddrPort("10.9.0.1:2718"), netip.MustParseAddrPort("10.9.0.2:2719")},
	{netip.MustParseAddrPort("[fd00::1]:2718"), netip.MustParseAddrPort("[fd00::2]:2719")},
}

// TestFrames holds frames of random payloads against gopacket, which computes the lengths and checksums itself.
func TestFrames(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	frame, payload := make([]byte, 2048), make([]byte, 1500)
	for _, p := range pairs {
		h := newHeaders(p.from, p.to, hostMAC, peerMAC)
		for range 500 {
			body := payload[:random.IntN(len(payload))]
			for i := range body {
				body[i] = byte(random.Uint32())
			}
			cut := random.IntN(len(body) + 1)
			n := h.build(frame, body[:cut], body[cut:])
			if want := reference(t, p.from, p.to, body); !bytes.Equal(frame[:n], want) {
				t.Fatalf("a frame with %d bytes of payload:\n%x\ngopacket:\n%x", len(body), frame[:n], want)
			}
			got, from, d := parse(frame[:n], [6]byte(peerMAC), false)
			if d != sound || from != p.from || !bytes.Equal(got, body) {
				t.Fatalf("parse: %v from %v, defect %d; sent %d bytes from %v", len(got), from, d, len(body), p.from)
			}
		}
	}
}

// reference returns the frame that gopacket builds.
func reference(t *testing.T, from, to netip.AddrPort, payload []byte) []byte {
	t.Helper()
	udp := &layers.UDP{SrcPort: layers.UDPPort(from.Port()), DstPort: layers.UDPPort(to.Port())}
	ethernet := &layers.Ethernet{SrcMAC: hostMAC, DstMAC: peerMAC, EthernetType: layers.EthernetTypeIPv4}
	var ip gopacket.SerializableLayer
	if from.Addr().Is4() {
		v4 := &layers.IPv4{Version: 4, TTL: hopLimit, Flags: layers.IPv4DontFragment, Protocol: layers.IPProtocolUDP,
			SrcIP: from.Addr().AsSlice(), DstIP: to.Addr().AsSlice()}
		ip = v4
		_ = udp.SetNetworkLayerForChecksum(v4) // fails only for other layers
	} else {
		ethernet.EthernetType = layers.EthernetTypeIPv6
		v6 := &layers.IPv6{Version: 6, HopLimit: hopLimit, NextHeader: layers.IPProtocolUDP,
			SrcIP: from.Addr().AsSlice(), DstIP: to.Addr().AsSlice()}
		ip = v6
		_ = udp.SetNetworkLayerForChecksum(v6)
	}
	buffer := gopacket.NewSerializeBuffer()
	options := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
	if err := gopacket.SerializeLayers(buffer, options, ethernet, ip, udp, gopacket.Payload(payload)); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()[:ethernetLen+headersAndPayload(from, payload)] // gopacket pads to 60 bytes, as network cards do
}

func headersAndPayload(from netip.AddrPort, payload []byte) int {
	if from.Addr().Is4() {
		return ipv4Len + udpLen + len(payload)
	}
	return ipv6Len + udpLen + len(payload)
}

// TestCorruptFrames changes every bit of a frame in turn. Only changes that leave the datagram intact may pass.
func TestCorruptFrames(t *testing.T) {
	body := []byte("a message of an FPGA")
	for _, p := range pairs {
		frame := make([]byte, 256)
		h := newHeaders(p.from, p.to, hostMAC, peerMAC)
		frame = frame[:h.build(frame, body)]
		for bit := range 8 * len(frame) {
			corrupt := bytes.Clone(frame)
			corrupt[bit/8] ^= 1 << (bit % 8)
			got, from, d := parse(corrupt, [6]byte(peerMAC), false)
			if d == sound && (from != p.from || !bytes.Equal(got, body)) {
				t.Errorf("bit %d of byte %d: accepted %q from %v", bit%8, bit/8, got, from)
			}
		}
		for n := range len(frame) {
			if _, _, d := parse(frame[:n], [6]byte(peerMAC), false); d == sound {
				t.Errorf("%d of %d bytes: accepted", n, len(frame))
			}
		}
		padded := append(bytes.Clone(frame), 0, 0, 0) // Ethernet pads short frames
		if got, _, d := parse(padded, [6]byte(peerMAC), false); d != sound || !bytes.Equal(got, body) {
			t.Errorf("a padded frame: %q, defect %d", got, d)
		}
	}
}

// TestPartialChecksum accepts a checksum of the pseudo header alone only from devices with local senders.
func TestPartialChecksum(t *testing.T) {
	for _, p := range pairs {
		frame := make([]byte, 256)
		h := newHeaders(p.from, p.to, hostMAC, peerMAC)
		frame = frame[:h.build(frame, []byte("from a neighbour on this host"))]
		udp := frame[h.udp:]
		partial := fold(h.pseudoSum + uint64(len(udp)))
		udp[6], udp[7] = byte(partial>>8), byte(partial)
		if _, _, d := parse(frame, [6]byte(peerMAC), true); d != sound {
			t.Errorf("%v: defect %d on a device with local senders", p.from, d)
		}
		if _, _, d := parse(frame, [6]byte(peerMAC), false); d != badChecksum {
			t.Errorf("%v: defect %d on a network card, want badChecksum", p.from, d)
		}
	}
}

// FuzzParse checks that no frame makes parse panic, or return bytes beyond the frame's datagram.
func FuzzParse(f *testing.F) {
	for _, p := range pairs {
		frame := make([]byte, 256)
		h := newHeaders(p.from, p.to, hostMAC, peerMAC)
		f.Add(frame[:h.build(frame, make([]byte, 32))])
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		payload, from, d := parse(frame, [6]byte(peerMAC), true)
		if d == sound && (len(payload)+ethernetLen+ipv4Len+udpLen > len(frame) || !from.IsValid()) {
			t.Fatalf("%d bytes of payload from %v in a frame of %d", len(payload), from, len(frame))
		}
	})
}

func BenchmarkBuild(b *testing.B) {
	h := newHeaders(pairs[0].from, pairs[0].to, hostMAC, peerMAC)
	frame, payload := make([]byte, 2048), make([]byte, 1408)
	for b.Loop() {
		h.build(frame, payload)
	}
}

package capturetest

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"

	"github.com/zrlmpi/zrlmpid/protocol"
)

var (
	a  = netip.MustParseAddrPort("10.1.0.1:2718")
	b  = netip.MustParseAddrPort("10.1.0.2:2719")
	a6 = netip.MustParseAddrPort("[fd00::1]:2718")
	b6 = netip.MustParseAddrPort("[fd00::2]:2719")
	at = time.Date(2024, 5, 17, 12, 0, 0, 123456000, time.UTC)
)

// gopacket decodes the frames that this package builds. The two share no code.
func TestFramesDecode(t *testing.T) {
	payload := []byte("payload")
	for name, c := range map[string]struct {
		frame []byte
		first gopacket.Decoder
		want  []gopacket.LayerType
	}{
		"ethernet": {Frame(Ethernet, UDP(a, b, payload)), layers.LayerTypeEthernet,
			[]gopacket.LayerType{layers.LayerTypeEthernet, layers.LayerTypeIPv4, layers.LayerTypeUDP}},
		"vlan": {Frame(Ethernet, UDP(a6, b6, payload), 7), layers.LayerTypeEthernet,
			[]gopacket.LayerType{layers.LayerTypeEthernet, layers.LayerTypeDot1Q, layers.LayerTypeIPv6,
				layers.LayerTypeUDP}},
		"qinq": {Frame(Ethernet, UDP(a, b, payload), 7, 8), layers.LayerTypeEthernet,
			[]gopacket.LayerType{layers.LayerTypeEthernet, layers.LayerTypeDot1Q, layers.LayerTypeDot1Q,
				layers.LayerTypeIPv4, layers.LayerTypeUDP}},
		"loopback": {Frame(Null, UDP(a6, b6, payload)), layers.LayerTypeLoopback,
			[]gopacket.LayerType{layers.LayerTypeLoopback, layers.LayerTypeIPv6, layers.LayerTypeUDP}},
		"sll": {Frame(SLL, UDP(a, b, payload)), layers.LayerTypeLinuxSLL,
			[]gopacket.LayerType{layers.LayerTypeLinuxSLL, layers.LayerTypeIPv4, layers.LayerTypeUDP}},
		"tcp": {TCP(a, b, Segment{Seq: 9, Flags: SYN, Payload: payload}), layers.LayerTypeIPv4,
			[]gopacket.LayerType{layers.LayerTypeIPv4, layers.LayerTypeTCP}},
		"vxlan": {VXLAN(a, netip.AddrPortFrom(b.Addr(), 4789), 42, Frame(Ethernet, UDP(a, b, payload))),
			layers.LayerTypeIPv4,
			[]gopacket.LayerType{layers.LayerTypeIPv4, layers.LayerTypeUDP, layers.LayerTypeVXLAN,
				layers.LayerTypeEthernet, layers.LayerTypeIPv4, layers.LayerTypeUDP}},
	} {
		p := gopacket.NewPacket(c.frame, c.first, gopacket.Default)
		var got []gopacket.LayerType
		for _, l := range p.Layers() {
			switch l.LayerType() {
			case gopacket.LayerTypePayload, gopacket.LayerTypeDecodeFailure:
			default:
				got = append(got, l.LayerType())
			}
		}
		if !slices.Equal(got, c.want) || !bytes.HasSuffix(c.frame, payload) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	fragments := Fragments(UDP(a, b, make([]byte, 100)), 77, 48)
	for i, f := range fragments {
		ip := gopacket.NewPacket(f, layers.LayerTypeIPv4, gopacket.Default).NetworkLayer().(*layers.IPv4)
		more := ip.Flags&layers.IPv4MoreFragments != 0
		if int(ip.FragOffset) != i*6 || more != (i < len(fragments)-1) || ip.Id != 77 {
			t.Errorf("fragment %d: %+v", i, ip)
		}
	}
}

func TestPcapngIsRead(t *testing.T) {
	c := New(Raw).AddUDP(at, a, b, []byte("odd")).AddUDP(at.Add(time.Second), a, b, []byte("even")).Truncate(30)
	for _, f := range []Format{{}, {BigEndian: true}} {
		r, err := pcapgo.NewNgReader(bytes.NewReader(c.Pcapng(f)), pcapgo.DefaultNgReaderOptions)
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range c.Packets {
			data, info, err := r.ReadPacketData()
			if err != nil || !bytes.Equal(data, p.Data) || !info.Timestamp.Equal(p.Time) ||
				info.Length != len(data)+p.Unrecorded {
				t.Errorf("packet %d: % x, %+v, %v", i, data, info, err)
			}
		}
		if _, _, err := r.ReadPacketData(); !errors.Is(err, io.EOF) {
			t.Errorf("at the end: %v", err)
		}
	}
}

func TestCorruption(t *testing.T) {
	create := func() *Capture {
		c := New(Raw)
		for i := range 4 {
			c.Add(at.Add(time.Duration(i)*time.Second), []byte{byte('1' + i), 'x'})
		}
		return c
	}
	for _, c := range []struct {
		name string
		c    *Capture
		want string
	}{
		{"drop", create().Drop(2), "1x 3x 4x "},
		{"duplicate", create().Duplicate(4), "1x 2x 3x 4x 4x "},
		{"swap", create().Swap(1, 3), "3x 2x 1x 4x "},
		{"edit", create().Edit(2, func(b []byte) []byte { return append(b, 'y') }), "1x 2xy 3x 4x "},
		{"snap", create().Truncate(1), "1 2 3 4 "},
		{"map", create().Map(Raw, func(b []byte) [][]byte {
			if b[0] == '2' {
				return nil
			}
			return [][]byte{b, {'m'}}
		}), "1x m 3x m 4x m "},
	} {
		got := ""
		for i, p := range c.c.Packets {
			got += string(p.Data) + " "
			if i > 0 && p.Time.Before(c.c.Packets[i-1].Time) {
				t.Errorf("%s: packet %d goes back in time", c.name, i+1)
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	original := create()
	frame := original.Packets[0].Data
	original.Edit(1, func(b []byte) []byte { b[0] = 'z'; return b })
	if frame[0] != '1' {
		t.Error("Edit changed the caller's bytes")
	}
}

func TestGzip(t *testing.T) {
	z, err := gzip.NewReader(bytes.NewReader(Gzip([]byte("hello"))))
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(z); err != nil || string(b) != "hello" {
		t.Errorf("%q %v", b, err)
	}
}

// Generated recordings contain complete handshakes in order of time, and depend only on size and seed.
func TestGenerate(t *testing.T) {
	const size = 4 << 20
	var file, again, other bytes.Buffer
	done, err := Generate(&file, size, 5)
	if err != nil {
		t.Fatal(err)
	}
	Generate(&again, size, 5)
	Generate(&other, size, 6)
	if !bytes.Equal(file.Bytes(), again.Bytes()) || bytes.Equal(file.Bytes(), other.Bytes()) {
		t.Error("the file does not depend on the seed alone")
	}
	if done.Bytes != int64(file.Len()) || done.Bytes < size || done.Bytes > 3*size {
		t.Errorf("%d bytes of %d, said to be %d", file.Len(), size, done.Bytes)
	}
	r, err := pcapgo.NewReader(&file)
	if err != nil {
		t.Fatal(err)
	}
	var packets, messages int64
	var last time.Time
	type message struct {
		header protocol.Header
		left   int64
	}
	pairs := make(map[uint32]*message)
	for {
		data, info, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		packets++
		if info.Timestamp.Before(last) {
			t.Fatalf("packet %d goes back in time", packets)
		}
		last = info.Timestamp
		p := gopacket.NewPacket(data, layers.LayerTypeEthernet, gopacket.Default)
		if p.ErrorLayer() != nil && len(p.ErrorLayer().LayerPayload()) == 0 {
			t.Fatalf("packet %d: %v", packets, p.ErrorLayer().Error())
		}
		ip, udp := p.NetworkLayer().(*layers.IPv4), p.TransportLayer().(*layers.UDP)
		sum := bytes.Clone(ip.Contents)
		sum[10], sum[11] = 0, 0
		if ip.Checksum != checksum(sum) || udp.SrcPort != 2718 || udp.DstPort != 2718 ||
			int(udp.Length) != 8+len(udp.Payload) {
			t.Fatalf("packet %d: %+v %+v", packets, ip, udp)
		}
		src, dst := uint32(ip.SrcIP.To4()[3]-1), uint32(ip.DstIP.To4()[3]-1)
		m := pairs[min(src, dst)]
		if m != nil && m.left > 0 {
			m.left -= int64(len(udp.Payload))
			if m.left < 0 {
				t.Fatalf("packet %d: more payload than announced", packets)
			}
			continue
		}
		h, err := protocol.CloudFPGA.Decode(udp.Payload)
		if err != nil || h.Src != src || h.Dst != dst {
			t.Fatalf("packet %d from %d to %d: %v %v", packets, src, dst, h, err)
		}
		switch {
		case m == nil && h.Type == protocol.SendRequest && len(udp.Payload) == 32:
			m = &message{}
			pairs[min(src, dst)] = m
		case m != nil && m.header.Type == protocol.SendRequest && h.Type == protocol.ClearToSend &&
			h.Src == m.header.Dst && h.Call == m.header.Call.Counterpart():
		case m != nil && m.header.Type == protocol.ClearToSend && h.Type == protocol.Data && h.Src == m.header.Dst:
			m.left = h.StreamPayload() - int64(len(udp.Payload)-protocol.HeaderLen)
		case m != nil && m.header.Type == protocol.Data && h.Type == protocol.Ack && h.Src == m.header.Dst:
			delete(pairs, min(src, dst))
			messages++
		default:
			t.Fatalf("packet %d: %v out of place", packets, h)
		}
		m.header = h
	}
	if packets != done.Packets || messages != done.Messages || messages < 50 || len(pairs) != 0 {
		t.Errorf("%d packets, %d messages, %d incomplete, said to be %+v", packets, messages, len(pairs), done)
	}
}

type failingWriter struct{ err error }

func (f failingWriter) Write([]byte) (int, error) { return 0, f.err }

func TestGenerateReportsErrors(t *testing.T) {
	full := errors.New("disk full")
	if _, err := Generate(failingWriter{full}, 1<<20, 1); !errors.Is(err, full) {
		t.Errorf("%v", err)
	}
}

// Frames of link types that gopacket does not support match the specification of the pcap formats.
func TestFrameLayout(t *testing.T) {
	ip := UDP(a, b, nil)
	f := Frame(SLL2, ip)
	if len(f) != 20+len(ip) || binary.BigEndian.Uint16(f) != 0x0800 || !bytes.HasSuffix(f, ip) {
		t.Errorf("SLL2: % x", f[:20])
	}
	if f := Frame(Loop, UDP(a6, b6, nil)); binary.BigEndian.Uint32(f) != 30 {
		t.Errorf("loop: % x", f[:4])
	}
}

func BenchmarkGenerate(b *testing.B) {
	const size = 64 << 20
	b.SetBytes(size)
	for b.Loop() {
		if _, err := Generate(io.Discard, size, 1); err != nil {
			b.Fatal(err)
		}
	}
}

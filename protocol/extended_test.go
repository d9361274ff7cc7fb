package protocol_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/bits"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// extPackets are headers with their payloads, and the text that zrlctl prints for them.
var extPackets = []struct {
	h       protocol.ExtHeader
	payload string
	text    string
}{
	{
		protocol.ExtHeader{Dst: 1, Type: protocol.SendRequest, Flags: protocol.FlagSync, Session: 7, PeerSession: 9,
			Number: 1, Acknowledged: 1, Message: 1, Comm: 2, Tag: 5, Length: 100001},
		"", "SEND_REQUEST 0→1 SEND_INT #1 msg=1 tag=5 comm=2 length=100001 SYNC ack=1",
	},
	{
		protocol.ExtHeader{Src: 1, Call: protocol.RecvFloat, Type: protocol.ClearToSend, Session: 9, PeerSession: 7,
			Number: 12, Acknowledged: 2, Message: 1, Length: 100000},
		"", "CLEAR_TO_SEND 1→0 RECV_FLOAT #12 msg=1 takes=100000 ack=2",
	},
	{
		protocol.ExtHeader{Dst: 1, Type: protocol.Data, Flags: protocol.FlagEager | protocol.FlagRetransmit, Session: 7,
			PeerSession: 9, Number: 17, Acknowledged: 12, Message: 3, Tag: protocol.MaxExtTag, Length: 100000,
			Offset: 4096},
		"five ", "DATA 0→1 SEND_INT #17 msg=3 tag=2147483647 comm=0 4096..4101 of 100000 EAGER RETRANSMIT ack=12",
	},
	{
		protocol.ExtHeader{Src: 1, Call: protocol.RecvInt, Type: protocol.Ack, Flags: protocol.FlagHello, Session: 9},
		"", "ACK 1→0 RECV_INT HELLO ack=0",
	},
	{
		protocol.ExtHeader{Dst: 1, Type: protocol.Error, Session: 7, PeerSession: 9, Number: 18, Acknowledged: 13,
			Message: 4, Tag: uint32(protocol.CodeCancel), Flags: protocol.FlagAckNow},
		"", `ERROR 0→1 SEND_INT #18 msg=4 "cancel" ACK_NOW ack=13`,
	},
	{
		protocol.ExtHeader{Dst: 1, Type: protocol.Data, Flags: protocol.FlagEager | protocol.FlagPlain, Session: 7,
			PeerSession: 9, Number: 18, Acknowledged: 12, Message: 4, Length: 5},
		"plain", "DATA 0→1 SEND_INT #18 msg=4 tag=0 comm=0 0..5 of 5 EAGER PLAIN ack=12",
	},
	{
		protocol.ExtHeader{Dst: ^uint32(0), Src: ^uint32(0), Call: protocol.Barrier, Type: protocol.Error, Flags: 63,
			Session: ^protocol.Session(0), PeerSession: ^protocol.Session(0), Number: ^uint32(0),
			Acknowledged: ^uint32(0), Message: ^uint32(0), Comm: ^uint32(0), Tag: ^uint32(0), Length: ^uint32(0),
			Offset: ^uint32(0), Clock: ^uint32(0)},
		"x", `ERROR 4294967295→4294967295 BARRIER #4294967295 msg=4294967295 "code(4294967295)" EAGER ACK_NOW SYNC HELLO RETRANSMIT PLAIN ack=4294967295`,
	},
}

func TestExtendedRoundTrip(t *testing.T) {
	for _, c := range extPackets {
		packet := protocol.AppendExtended([]byte("before"), &c.h, []byte(c.payload))[len("before"):]
		h, payload, d := protocol.ParseExtended(packet)
		if !d.OK() || h != c.h || string(payload) != c.payload {
			t.Errorf("%s becomes %+v %q, %v", c.text, h, payload, d.Err())
		}
		if got := h.Describe(len(payload)); got != c.text {
			t.Errorf("it prints as\n%s, want\n%s", got, c.text)
		}
		if !protocol.IsExtended(packet) {
			t.Errorf("%s is not recognized", c.text)
		}
		// A payload in parts gives the same packet.
		half := len(c.payload) / 2
		parts := make([]byte, protocol.ExtHeaderLen)
		protocol.PutExtended(parts, &c.h, []byte(c.payload[:half]), nil, []byte(c.payload[half:]))
		if !bytes.Equal(parts, packet[:protocol.ExtHeaderLen]) {
			t.Errorf("%s: in parts it is\n%x, as a whole\n%x", c.text, parts, packet)
		}
		// The frame of 32 bytes is a header for tools that know no other profile.
		frame, err := protocol.Extended.Decode(packet)
		if err != nil || frame != c.h.Frame() {
			t.Errorf("%s: the frame is %v, %v", c.text, frame, err)
		}
		if h, n, d := protocol.ParseExtendedHeader(packet[:protocol.ExtHeaderLen]); !d.OK() || h != c.h ||
			int(n) != len(c.payload) {
			t.Errorf("%s: the header alone is %v, %d bytes, %v", c.text, &h, n, d.Err())
		}
		for _, p := range []protocol.Profile{protocol.CloudFPGA, protocol.V09} {
			if _, err := p.Decode(packet); err == nil {
				t.Errorf("%s is a good header of %v", c.text, p)
			}
		}
	}
	if at := extPackets[2].h.String(); !strings.Contains(at, " at 4096 of 100000 ") {
		t.Errorf("without its payload's length it prints as %s", at)
	}
}

// The checksum is the CRC-32C of RFC 3720, computed here bit by bit.
func TestExtendedChecksum(t *testing.T) {
	packet := protocol.AppendExtended(nil, &extPackets[2].h, []byte(extPackets[2].payload))
	got := binary.LittleEndian.Uint32(packet[24:])
	clear(packet[24:28])
	sum := ^uint32(0)
	for _, b := range packet {
		sum ^= uint32(b)
		for range 8 {
			sum = sum>>1 ^ bits.Reverse32(0x1EDC6F41)*(sum&1)
		}
	}
	if got != ^sum {
		t.Errorf("the checksum is %08x, want %08x", got, ^sum)
	}
}

// The size field is in words, rounded up, and 0 in packets without a size.
func TestExtendedSize(t *testing.T) {
	for _, c := range []struct {
		t            protocol.Type
		length, size uint32
	}{
		{protocol.Data, 0, 0},
		{protocol.Data, 1, 1},
		{protocol.Data, 8, 2},
		{protocol.SendRequest, 9, 3},
		{protocol.SendRequest, ^uint32(0), 1 << 30},
		{protocol.ClearToSend, 9, 0},
		{protocol.Ack, 9, 0},
		{protocol.Error, 9, 0},
	} {
		h := protocol.ExtHeader{Type: c.t, Length: c.length}
		if got := h.Size(); got != c.size {
			t.Errorf("size of %v is %d, want %d", &h, got, c.size)
		}
	}
}

func TestExtendedNumbered(t *testing.T) {
	for _, c := range []struct {
		t        protocol.Type
		code     protocol.ErrorCode
		numbered bool
	}{
		{protocol.SendRequest, 0, true},
		{protocol.ClearToSend, 0, true},
		{protocol.Data, 0, true},
		// The tag of a message is not a code.
		{protocol.Data, protocol.CodeClose, true},
		{protocol.Ack, 0, false},
		{protocol.Error, protocol.CodeCancel, true},
		{protocol.Error, protocol.CodeCanceled, true},
		{protocol.Error, protocol.CodeTooLong, true},
		{protocol.Error, protocol.CodeClose, false},
	} {
		h := protocol.ExtHeader{Type: c.t, Tag: uint32(c.code)}
		if h.IsNumbered() != c.numbered {
			t.Errorf("%v numbered: %v", &h, h.IsNumbered())
		}
	}
}

// reseal writes the correct checksum for the packet's bytes into the packet.
func reseal(packet []byte) {
	clear(packet[24:28])
	covered := packet
	if packet[19]&0x20 != 0 { // PLAIN
		covered = packet[:80]
	}
	binary.LittleEndian.PutUint32(packet[24:], crc32.Checksum(covered, crc32.MakeTable(crc32.Castagnoli)))
}

// Checks are made in the order of E2: a packet with two defects is dropped because of the first.
func TestExtendedDefects(t *testing.T) {
	good := protocol.AppendExtended(nil, &extPackets[0].h, []byte("payload!"))
	for _, c := range []struct {
		at     int
		to     byte
		reseal bool
		kind   protocol.DefectKind
		text   string
	}{
		{3, 0, true, protocol.DefectStartMark, "zrlmpi header: byte 3 is 0x00, but the start mark is 0x96"},
		{28, 0, true, protocol.DefectEndMark, "zrlmpi header: byte 28 is 0x00, but the end mark is 0x96"},
		{18, 0, true, protocol.DefectReserved,
			"zrlmpi header: byte 18 is 0x00, but in the extended profile must be 0xe2"},
		{18, 0xe1, true, protocol.DefectReserved,
			"zrlmpi header: byte 18 is 0xe1, but in the extended profile must be 0xe2"},
		{20, 9, true, protocol.DefectLength, "zrlmpi packet: 8 bytes follow the header, which says 9"},
		{23, 1, true, protocol.DefectLength, "zrlmpi packet: 8 bytes follow the header, which says 16777224"},
		{83, 0, false, protocol.DefectChecksum, "it was corrupted in transit"},
		{76, 1, false, protocol.DefectChecksum, "it was corrupted in transit"},
		{76, 1, true, protocol.DefectNone, ""}, // any clock is valid
		{16, 5, true, protocol.DefectCall, "zrlmpi header: byte 16 is 0x05, but the calls are 0 to 4"},
		{17, 0, true, protocol.DefectType, "zrlmpi header: byte 17 is 0x00, but the packet types are 1 to 5"},
		{17, 6, true, protocol.DefectType, "zrlmpi header: byte 17 is 0x06, but the packet types are 1 to 5"},
		{19, 0x04, true, protocol.DefectReserved,
			"zrlmpi header: byte 19 is 0x04, but in the extended profile must be 0x84"},
		{19, 0xa4, true, protocol.DefectNone, ""}, // PLAIN
		{19, 0xa4, false, protocol.DefectChecksum, "it was corrupted in transit"},
		{19, 0xe4, true, protocol.DefectReserved,
			"zrlmpi header: byte 19 is 0xe4, but in the extended profile must be 0xa4"},
		{19, 0xc4, true, protocol.DefectReserved,
			"zrlmpi header: byte 19 is 0xc4, but in the extended profile must be 0x84"},
	} {
		packet := bytes.Clone(good)
		packet[c.at] = c.to
		if c.reseal {
			reseal(packet)
		}
		_, _, d := protocol.ParseExtended(packet)
		if d.Kind != c.kind {
			t.Errorf("byte %d = %#x: %v", c.at, c.to, d.Err())
		} else if err := d.Err(); err != nil && !strings.Contains(err.Error(), c.text) {
			t.Errorf("says %q, want %q", err, c.text)
		}
	}
	// From the last check to the first: each fault hides the faults before it.
	packet := bytes.Clone(good)
	for _, c := range []struct {
		at   int
		to   byte
		kind protocol.DefectKind
	}{
		{19, 0, protocol.DefectReserved},
		{17, 9, protocol.DefectType},
		{16, 9, protocol.DefectCall},
		{24, packet[24] + 1, protocol.DefectChecksum},
		{20, 1, protocol.DefectLength},
		{18, 0, protocol.DefectReserved},
		{28, 0, protocol.DefectEndMark},
		{0, 0, protocol.DefectStartMark},
	} {
		packet[c.at] = c.to
		if c.at > 19 || c.at < 16 || c.at == 18 {
			// These are checked before the checksum.
		} else {
			reseal(packet)
		}
		if _, _, d := protocol.ParseExtended(packet); d.Kind != c.kind {
			t.Errorf("byte %d = %#x as well: %v, want %v", c.at, c.to, d.Kind, c.kind)
		}
	}
	for n := range protocol.ExtHeaderLen {
		_, _, d := protocol.ParseExtended(packet[:n])
		var he *protocol.HeaderError
		if !errors.As(d.Err(), &he) || he.Kind != protocol.DefectShort || int(he.Offset) != n ||
			!strings.HasSuffix(he.Error(), "a header has 80") {
			t.Errorf("%d bytes: %v", n, d.Err())
		}
	}
}

// E40: every inverted bit and every truncation of a packet is detected.
func TestExtendedDetectsEveryFlippedBit(t *testing.T) {
	for _, n := range []int{0, 1, 100, 1344} {
		packet := protocol.AppendExtended(nil, &extPackets[2].h, bytes.Repeat([]byte{0x5a}, n))
		for i := range len(packet) * 8 {
			packet[i/8] ^= 1 << (i % 8)
			if _, _, d := protocol.ParseExtended(packet); d.OK() {
				t.Errorf("%d bytes of payload: bit %d of byte %d may change", n, i%8, i/8)
			}
			packet[i/8] ^= 1 << (i % 8)
		}
		for i := range packet {
			if _, _, d := protocol.ParseExtended(packet[:i]); d.OK() {
				t.Errorf("%d bytes of payload: %d bytes of the packet are enough", n, i)
			}
		}
		if _, _, d := protocol.ParseExtended(append(packet, 0)); d.Kind != protocol.DefectLength {
			t.Errorf("%d bytes of payload and one more: %v", n, d.Err())
		}
	}
}

// E43: with PLAIN, every inverted bit in the header, including the flag, and every change of the packet's length is
// detected. Changes of the payload are not.
func TestExtendedPlain(t *testing.T) {
	for _, n := range []int{0, 1, 1344} {
		h := extPackets[2].h
		h.Flags |= protocol.FlagPlain
		packet := protocol.AppendExtended(nil, &h, bytes.Repeat([]byte{0x5a}, n))
		other := protocol.AppendExtended(nil, &h, make([]byte, n))
		if !bytes.Equal(packet[:protocol.ExtHeaderLen], other[:protocol.ExtHeaderLen]) {
			t.Errorf("%d bytes: the header depends on the payload", n)
		}
		if got, payload, d := protocol.ParseExtended(packet); !d.OK() || got != h || len(payload) != n {
			t.Errorf("%d bytes: %+v, %d bytes, %v", n, got, len(payload), d.Err())
		}
		for i := range len(packet) * 8 {
			packet[i/8] ^= 1 << (i % 8)
			if _, _, d := protocol.ParseExtended(packet); d.OK() != (i >= 8*protocol.ExtHeaderLen) {
				t.Errorf("%d bytes: bit %d of byte %d changes: %v", n, i%8, i/8, d.Err())
			}
			packet[i/8] ^= 1 << (i % 8)
		}
		if _, _, d := protocol.ParseExtended(append(packet, 0)); d.Kind != protocol.DefectLength {
			t.Errorf("%d bytes and one more: %v", n, d.Err())
		}
	}
	// Without the flag, a checksum of the header alone is invalid.
	h := extPackets[2].h
	packet := protocol.AppendExtended(nil, &h, []byte("payload"))
	clear(packet[24:28])
	binary.LittleEndian.PutUint32(packet[24:], crc32.Checksum(packet[:80], crc32.MakeTable(crc32.Castagnoli)))
	if _, _, d := protocol.ParseExtended(packet); d.Kind != protocol.DefectChecksum {
		t.Errorf("the header's checksum without the flag: %v", d.Err())
	}
}

// Parse and ParseExtended agree.
func TestExtendedParseInPlace(t *testing.T) {
	var h protocol.ExtHeader
	for _, c := range extPackets {
		packet := protocol.AppendExtended(nil, &c.h, []byte(c.payload))
		if payload, ok := h.Parse(packet); !ok || h != c.h || string(payload) != c.payload {
			t.Errorf("%s becomes %+v %q, %v", c.text, h, payload, ok)
		}
		for i := range packet {
			bad := bytes.Clone(packet)
			bad[i] ^= 0xff
			_, _, d := protocol.ParseExtended(bad)
			if _, ok := h.Parse(bad); ok != d.OK() {
				t.Errorf("%s, byte %d: %v, but %v", c.text, i, ok, d.Err())
			}
			if _, ok := h.Parse(packet[:i]); ok {
				t.Errorf("%s: %d bytes are enough", c.text, i)
			}
		}
	}
}

// A frame written by Put is not accepted as a packet.
func TestExtendedFrameAlone(t *testing.T) {
	h := protocol.Header{Dst: 1, Src: 2, Size: 7, Call: protocol.SendFloat, Type: protocol.Data}
	b := protocol.Extended.Append(nil, h)
	if got, err := protocol.Extended.Decode(b); err != nil || got != h {
		t.Errorf("got %v, %v", got, err)
	}
	if !protocol.IsExtended(b) {
		t.Errorf("%x is not recognized", b)
	}
	if _, _, d := protocol.ParseExtended(append(b, make([]byte, 40)...)); d.OK() {
		t.Error("a frame without a checksum is a packet")
	}
	for _, b := range [][]byte{nil, b[:19], protocol.CloudFPGA.Append(nil, h),
		protocol.V09.Append(nil, protocol.Header{Type: protocol.Data, Tag: protocol.ExtVersion})} {
		if protocol.IsExtended(b) {
			t.Errorf("%x is recognized", b)
		}
	}
	for _, at := range []int{16, 17, 18, 19} {
		bad := bytes.Clone(b)
		bad[at] = 0x7f
		if _, d := protocol.Extended.Parse(bad); int(d.Offset) != at || d.OK() {
			t.Errorf("byte %d: %v", at, d.Err())
		}
	}
}

func TestExtendedAllocatesNothing(t *testing.T) {
	good := protocol.AppendExtended(nil, &extPackets[2].h, make([]byte, 1344))
	bad := bytes.Clone(good)
	bad[100]++
	buf := make([]byte, protocol.ExtHeaderLen)
	ranges := make([]protocol.Range, 0, protocol.MaxAckRanges)
	ack := protocol.AppendAck(nil, &protocol.AckInfo{Ranges: []protocol.Range{{First: 1, End: 2}, {First: 4, End: 9}}})
	if n := testing.AllocsPerRun(100, func() {
		h, payload, _ := protocol.ParseExtended(good)
		h.Parse(good)
		protocol.PutExtended(buf, &h, payload[:100], payload[100:])
		protocol.PutExtended(buf, &h)
		protocol.ParseExtended(bad)
		a, _ := protocol.ParseAck(ack, ranges)
		ack = protocol.AppendAck(ack[:0], &a)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzExtended(f *testing.F) {
	for _, c := range extPackets {
		f.Add(protocol.AppendExtended(nil, &c.h, []byte(c.payload)), uint32(77))
		f.Add(protocol.AppendExtended(nil, &c.h, []byte(c.payload)), uint32(19*8+5)) // PLAIN
	}
	f.Add([]byte("short"), uint32(0))
	f.Fuzz(func(t *testing.T, in []byte, bit uint32) {
		b, before := bytes.Clone(in), bytes.Clone(in)
		protocol.IsExtended(b)
		// A mutation rarely has a valid checksum: test it with a valid one as well.
		for range 2 {
			h, payload, d := protocol.ParseExtended(b)
			if !bytes.Equal(b, before) {
				t.Fatal("the packet was changed")
			}
			if d.OK() {
				// The size is ignored and not kept.
				binary.LittleEndian.PutUint32(before[12:], h.Size())
				reseal(before)
				if again := protocol.AppendExtended(nil, &h, payload); !bytes.Equal(again, before) {
					t.Fatalf("%x decodes to %v, which encodes to %x", b, &h, again)
				}
				flipped := bytes.Clone(b)
				at := bit % uint32(len(b)*8)
				flipped[at/8] ^= 1 << (at % 8)
				may := h.Flags&protocol.FlagPlain != 0 && at >= 8*protocol.ExtHeaderLen
				if _, _, d := protocol.ParseExtended(flipped); d.OK() != may {
					t.Fatalf("bit %d of %x changes: %v", at, b, d.Err())
				}
				var in protocol.ExtHeader
				if _, ok := in.Parse(b); !ok || in != h {
					t.Fatalf("%x is %+v in place", b, in)
				}
				return
			}
			var he *protocol.HeaderError
			if !errors.As(d.Err(), &he) || he.Error() == "" {
				t.Fatal(d.Err())
			}
			if len(b) < protocol.ExtHeaderLen {
				return
			}
			binary.LittleEndian.PutUint32(b[20:], uint32(len(b)-protocol.ExtHeaderLen))
			reseal(b)
			copy(before, b)
		}
	})
}

// FuzzExtendedHeader checks for any header that parsing is the inverse of encoding.
func FuzzExtendedHeader(f *testing.F) {
	f.Add(uint32(1), uint32(0), byte(2), byte(3), byte(17), uint64(9), uint64(8), uint32(7), uint32(6), uint32(5),
		uint32(4), uint32(3), uint32(2), uint32(1), uint32(11), []byte("payload"))
	f.Fuzz(func(t *testing.T, dst, src uint32, call, typ, flags byte, session, peer uint64, number, acked, message,
		comm, tag, length, offset, clock uint32, payload []byte) {
		h := protocol.ExtHeader{
			Dst: dst, Src: src, Call: protocol.Call(call % 5), Type: protocol.Type(1 + typ%5),
			Flags:   protocol.ExtFlags(flags % 64),
			Session: protocol.Session(session), PeerSession: protocol.Session(peer), Number: number,
			Acknowledged: acked,
			Message:      message, Comm: comm, Tag: tag, Length: length, Offset: offset, Clock: clock,
		}
		got, rest, d := protocol.ParseExtended(protocol.AppendExtended(nil, &h, payload))
		if !d.OK() || got != h || !bytes.Equal(rest, payload) {
			t.Fatalf("%+v becomes %+v, %v", h, got, d.Err())
		}
		if h.String() == "" || h.Describe(len(payload)) == "" {
			t.Fatal("it prints as nothing")
		}
	})
}

func BenchmarkExtendedPut(b *testing.B) {
	h, payload := extPackets[2].h, make([]byte, 1344)
	buf := make([]byte, protocol.ExtHeaderLen)
	b.SetBytes(int64(len(buf) + len(payload)))
	b.ReportAllocs()
	for b.Loop() {
		protocol.PutExtended(buf, &h, payload)
	}
}

func BenchmarkExtendedParse(b *testing.B) {
	packet := protocol.AppendExtended(nil, &extPackets[2].h, make([]byte, 1344))
	b.SetBytes(int64(len(packet)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, d := protocol.ParseExtended(packet); !d.OK() {
			b.Fatal(d)
		}
	}
}

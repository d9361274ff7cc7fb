package tcp

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/transporttest"
)

// feed makes a reader read the bytes of in, in pieces whose lengths cycle through cuts. It returns the packets
// and the final error.
func feed(in []byte, cuts []int) (packets []string, err error) {
	r := &reader{}
	for next := 0; len(in) > 0; next++ {
		n := len(in)
		if len(cuts) > 0 {
			n = cuts[next%len(cuts)]
		}
		n = copy(r.readBuffer(), in[:min(n, len(in))])
		in = in[n:]
		r.advance(n)
		for {
			packet, err := r.next()
			if err != nil {
				return packets, err
			}
			if packet == nil {
				break
			}
			packets = append(packets, string(packet))
		}
	}
	return packets, nil
}

// packetStream returns a stream of packets with payloads of the given lengths.
func packetStream(lengths ...int) (stream []byte, packets []string) {
	for i, n := range lengths {
		p := transporttest.Packet(0, 1, uint32(i+1), n)
		whole := slices.Concat(p.Header[:], p.Payload)
		stream, packets = append(stream, whole...), append(packets, string(whole))
	}
	return stream, packets
}

// TestReaderCutsAtEveryByte checks that the reader accepts a stream that is cut at any byte.
func TestReaderCutsAtEveryByte(t *testing.T) {
	stream, want := packetStream(0, 1, 100, 0, 7)
	for at := 1; at < len(stream); at++ {
		if got, err := feed(stream, []int{at, len(stream)}); err != nil || !slices.Equal(got, want) {
			t.Fatalf("cut at byte %d: %d packets of %d, %v", at, len(got), len(want), err)
		}
	}
	if got, err := feed(stream, []int{1}); err != nil || !slices.Equal(got, want) {
		t.Fatalf("byte by byte: %d packets of %d, %v", len(got), len(want), err)
	}
}

// TestReaderOfLongPackets checks that packets of all lengths are returned complete, whatever else the buffer
// contains, and that the buffer is bounded.
func TestReaderOfLongPackets(t *testing.T) {
	const longest = protocol.MaxStreamPayload
	var lengths []int
	for i := range 60 {
		lengths = append(lengths, []int{longest, longest - 1, 0, 1000, longest / 2}[i%5])
	}
	stream, want := packetStream(lengths...)
	for _, cuts := range [][]int{nil, {readLen - 1}, {longest}, {40_000, 3}, {71, 1, 72, 30_000}, {1 << 20}} {
		if got, err := feed(stream, cuts); err != nil || !slices.Equal(got, want) {
			t.Errorf("cuts %v: %d packets of %d, %v", cuts, len(got), len(want), err)
		}
	}
	r := &reader{}
	for range 100 {
		r.advance(copy(r.readBuffer(), stream))
		for packet, err := r.next(); packet != nil || err != nil; packet, err = r.next() {
			if err != nil {
				break // the stream restarts in the middle of a packet
			}
		}
		if len(r.buf) > maxReadLen {
			t.Fatalf("a buffer of %d bytes", len(r.buf))
		}
		r.start = r.end
	}
}

func TestReaderAllocatesNothing(t *testing.T) {
	stream, _ := packetStream(100, 0, protocol.MaxStreamPayload)
	r := &reader{}
	at := 0
	step := func() {
		n := copy(r.readBuffer(), stream[at:])
		r.advance(n)
		at = (at + n) % len(stream)
		for {
			packet, err := r.next()
			if err != nil {
				t.Fatal(err)
			}
			if packet == nil {
				return
			}
		}
	}
	for range 20 { // until the buffer has grown
		step()
	}
	if n := testing.AllocsPerRun(1000, step); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// whole parses a stream all at once. It returns the packets, and the position of the first fault, or −1.
func whole(in []byte) (packets []string, fault int64) {
	rest := in
	for len(rest) >= protocol.ExtHeaderLen {
		_, payload, d := protocol.ParseExtendedHeader(rest[:protocol.ExtHeaderLen])
		n := protocol.ExtHeaderLen + int(payload)
		if d.OK() && payload <= protocol.MaxStreamPayload {
			if n > len(rest) {
				break
			}
			_, _, d = protocol.ParseExtended(rest[:n])
		}
		if !d.OK() || payload > protocol.MaxStreamPayload {
			return packets, int64(len(in) - len(rest))
		}
		packets, rest = append(packets, string(rest[:n])), rest[n:]
	}
	return packets, -1
}

func TestReaderFaults(t *testing.T) {
	good, _ := packetStream(8)
	edit := func(at int, to byte) []byte {
		b := bytes.Clone(good)
		b[at] = to
		return append(bytes.Clone(good), b...)
	}
	header := func(kind protocol.DefectKind) error {
		return &protocol.HeaderError{Defect: protocol.Defect{Kind: kind}}
	}
	for name, c := range map[string]struct {
		in     []byte
		is     error
		text   string
		offset int64
	}{
		"start mark": {edit(1, 0), header(protocol.DefectStartMark), "byte 88: zrlmpi header: byte 1 ", 88},
		"end mark":   {edit(31, 0), header(protocol.DefectEndMark), "byte 88: zrlmpi header: byte 31 ", 88},
		"version":    {edit(18, 0), header(protocol.DefectReserved), "byte 88: zrlmpi header: byte 18 ", 88},
		"checksum":   {edit(87, 1), header(protocol.DefectChecksum), "byte 88: zrlmpi packet: the checksum", 88},
		// no more data is needed to detect this
		"too long": {edit(21, 0x80), nil, "byte 88: a packet with 32776 bytes of payload", 88},
		"another protocol": {[]byte(strings.Repeat("GET / HTTP/1.1\r\n", 9)), header(protocol.DefectStartMark),
			"byte 0:", 0},
		"another profile": {append(protocol.CloudFPGA.Append(nil, protocol.Header{Type: protocol.Ack}),
			make([]byte, 48)...),
			header(protocol.DefectReserved), "byte 0:", 0},
	} {
		_, err := feed(c.in, nil)
		fault, ok := errors.AsType[*protocol.FrameError](err)
		if !ok || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.text) ||
			fault.Offset != c.offset {
			t.Errorf("%s: %v, want %q at %d", name, err, c.text, c.offset)
		}
	}
	var long *protocol.StreamPayloadError
	if _, err := feed(edit(22, 1), nil); !errors.As(err, &long) || long.Bytes != 1<<16+8 {
		t.Errorf("too long a payload gives %v", err)
	}
}

// plainDamaged returns two packets with a corrupt payload: one with the flag PLAIN, and one without it.
func plainDamaged() []byte {
	h := protocol.ExtHeader{Dst: 1, Type: protocol.Data, Flags: protocol.FlagPlain, Length: 8}
	b := protocol.AppendExtended(nil, &h, make([]byte, 8))
	b[protocol.ExtHeaderLen]++
	h.Flags = 0
	return protocol.AppendExtended(b, &h, make([]byte, 8))
}

// TestReaderTakesPlainPackets checks that the reader does not reject a packet because of data that the checksum
// does not cover (E43).
func TestReaderTakesPlainPackets(t *testing.T) {
	in := plainDamaged()
	if got, err := feed(in, nil); err != nil || len(got) != 2 || got[0] != string(in[:88]) {
		t.Errorf("%d packets, %v", len(got), err)
	}
	in[19] &^= byte(protocol.FlagPlain)
	if got, err := feed(in, nil); !errors.Is(err,
		&protocol.HeaderError{Defect: protocol.Defect{Kind: protocol.DefectChecksum}}) || len(got) != 0 {
		t.Errorf("without the flag: %d packets, %v", len(got), err)
	}
}

// FuzzReader checks that the reader finds the same packets and faults, however the stream is cut.
func FuzzReader(f *testing.F) {
	good, _ := packetStream(0, 5, 344, 0)
	f.Add(good, []byte{0, 31, 200})
	f.Add(good[:len(good)-1], []byte{31})
	f.Add(append(bytes.Clone(good[:149]), "another protocol"...), []byte{})
	f.Add(plainDamaged(), []byte{80})
	corrupt := bytes.Clone(good)
	corrupt[100]++
	f.Add(corrupt, []byte{9})
	f.Fuzz(func(t *testing.T, in, cuts []byte) {
		var lengths []int
		for _, n := range cuts {
			lengths = append(lengths, 1+int(n))
		}
		got, err := feed(in, lengths)
		want, at := whole(in)
		if !slices.Equal(got, want) {
			t.Fatalf("%q instead of %q", got, want)
		}
		fault, ok := errors.AsType[*protocol.FrameError](err)
		if ok != (at >= 0) || ok && fault.Offset != at {
			t.Fatalf("%v, with a fault at %d", err, at)
		}
	})
}

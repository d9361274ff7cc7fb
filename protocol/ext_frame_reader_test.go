package protocol

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// extPackets reads all of r and returns the packets, and the error that ended
// it.
func extPackets(r io.Reader) ([]string, error) {
	f := NewExtFrameReader(r)
	var packets []string
	for {
		p, err := f.Next()
		if err != nil {
			if _, again := f.Next(); again != err {
				return packets, fmt.Errorf("%w, and then %w", err, again)
			}
			return packets, err
		}
		packets = append(packets, string(p))
	}
}

func extStream(lengths ...int) (whole []byte, packets []string) {
	for i, n := range lengths {
		h := ExtHeader{Dst: 1, Type: Data, Number: uint32(i), Length: 1 << 20}
		p := AppendExtended(nil, &h, bytes.Repeat([]byte{byte(i)}, n))
		whole, packets = append(whole, p...), append(packets, string(p))
	}
	return whole, packets
}

func TestExtFrameReader(t *testing.T) {
	in, want := extStream(0, 1, MaxStreamPayload, MaxStreamPayload-1, 0, 1344, MaxStreamPayload, MaxStreamPayload)
	for name, r := range map[string]io.Reader{
		"whole":          bytes.NewReader(in),
		"byte by byte":   iotest.OneByteReader(bytes.NewReader(in)),
		"halves":         iotest.HalfReader(bytes.NewReader(in)),
		"error with end": iotest.DataErrReader(bytes.NewReader(in)),
	} {
		got, err := extPackets(r)
		if err != io.EOF {
			t.Errorf("%s: ended with %v", name, err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %d packets, want %d", name, len(got), len(want))
		}
	}
}

func TestExtFrameReaderErrors(t *testing.T) {
	good, _ := extStream(8)
	edit := func(at int, to byte) []byte {
		b := bytes.Clone(good)
		b[at] = to
		return append(bytes.Clone(good), b...)
	}
	readErr := errors.New("cable cut")
	header := func(kind DefectKind) error { return &HeaderError{Defect{Kind: kind}} }
	for _, tt := range []struct {
		name   string
		in     io.Reader
		is     error
		text   string
		offset int64 // of the FrameError; -1 if it is not one
	}{
		{"start mark", bytes.NewReader(edit(1, 0)), header(DefectStartMark), "byte 88: zrlmpi header: byte 1 ", 88},
		{"end mark", bytes.NewReader(edit(31, 0)), header(DefectEndMark), "byte 88: zrlmpi header: byte 31 ", 88},
		{"version", bytes.NewReader(edit(18, 0)), header(DefectReserved), "byte 88: zrlmpi header: byte 18 ", 88},
		{"checksum", bytes.NewReader(edit(87, 1)), header(DefectChecksum), "byte 88: zrlmpi packet: the checksum", 88},
		// Detected from the header: nothing more needs to arrive.
		{"too long", io.MultiReader(bytes.NewReader(edit(21, 0x80)), iotest.ErrReader(readErr)), nil, "byte 88: a packet with 32776 bytes of payload", 88},
		{"another protocol", strings.NewReader(strings.Repeat("GET / HTTP/1.1\r\n", 9)), header(DefectStartMark), "byte 0:", 0},
		{"another profile", bytes.NewReader(append(CloudFPGA.Append(nil, Header{Type: Ack}), make([]byte, 48)...)), header(DefectReserved), "byte 0:", 0},
		{"end in a header", bytes.NewReader(edit(0, Mark)[:88+79]), io.ErrUnexpectedEOF, "byte 167, 79 bytes into a header", -1},
		{"end in a payload", bytes.NewReader(good[:87]), io.ErrUnexpectedEOF, "byte 87, 1 bytes before the end of a packet", -1},
		{"read error in a header", io.MultiReader(bytes.NewReader(good[:70]), iotest.ErrReader(readErr)), readErr, "cable cut", -1},
		{"read error in a payload", io.MultiReader(bytes.NewReader(good[:87]), iotest.ErrReader(readErr)), readErr, "cable cut", -1},
		{"no progress", idleReader{}, io.ErrNoProgress, "", -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := extPackets(tt.in)
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("the error is %v, want %v", err, tt.is)
			}
			if !strings.Contains(err.Error(), tt.text) {
				t.Errorf("%v does not say %q", err, tt.text)
			}
			var frameErr *FrameError
			if errors.As(err, &frameErr) != (tt.offset >= 0) {
				t.Fatalf("%v: a FrameError?", err)
			}
			if frameErr != nil && frameErr.Offset != tt.offset {
				t.Errorf("the fault is at %d, want %d", frameErr.Offset, tt.offset)
			}
		})
	}
	var long *StreamPayloadError
	if _, err := extPackets(bytes.NewReader(edit(22, 1))); !errors.As(err, &long) || long.Bytes != 1<<16+8 {
		t.Errorf("too long a payload gives %v", err)
	}
}

// plainDamaged is a packet with the flag PLAIN whose payload was corrupt, and one
// without it.
func plainDamaged() []byte {
	h := ExtHeader{Dst: 1, Type: Data, Flags: FlagPlain, Length: 8}
	b := AppendExtended(nil, &h, make([]byte, 8))
	b[ExtHeaderLen]++
	h.Flags = 0
	return AppendExtended(b, &h, make([]byte, 8))
}

// What its checksum does not cover is none of the reader's business (E43).
func TestExtFrameReaderTakesPlainPackets(t *testing.T) {
	in := plainDamaged()
	if got, err := extPackets(bytes.NewReader(in)); err != io.EOF || len(got) != 2 || got[0] != string(in[:88]) {
		t.Errorf("%d packets, %v", len(got), err)
	}
	in[19] &^= byte(FlagPlain)
	if got, err := extPackets(bytes.NewReader(in)); !errors.Is(err, &HeaderError{Defect{Kind: DefectChecksum}}) || len(got) != 0 {
		t.Errorf("without the flag: %d packets, %v", len(got), err)
	}
}

func TestExtFrameReaderDoesNotAllocate(t *testing.T) {
	in, _ := extStream(100, 0, MaxStreamPayload)
	f := NewExtFrameReader(&repeat{b: in})
	if n := testing.AllocsPerRun(1000, func() {
		if _, err := f.Next(); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzExtFrameReader checks that how a stream is split in transit changes nothing,
// that every packet is good, and that the packets are the bytes of the stream.
func FuzzExtFrameReader(f *testing.F) {
	in, _ := extStream(0, 5, 344, 0)
	f.Add(in, []byte{0, 31, 200})
	f.Add(in[:len(in)-1], []byte{31})
	f.Add(append(bytes.Clone(in[:149]), 'x'), []byte{})
	f.Add(plainDamaged(), []byte{80})
	f.Fuzz(func(t *testing.T, in, cuts []byte) {
		whole, wholeErr := extPackets(bytes.NewReader(in))
		cut, cutErr := extPackets(&cutReader{in: in, cuts: cuts})
		if !slices.Equal(whole, cut) {
			t.Fatalf("whole:\n%q\ncut:\n%q", whole, cut)
		}
		if wholeErr.Error() != cutErr.Error() {
			t.Fatalf("whole: %v\ncut:   %v", wholeErr, cutErr)
		}
		seen := strings.Join(whole, "")
		if !strings.HasPrefix(string(in), seen) {
			t.Fatal("the packets are not the bytes of the stream")
		}
		var frameErr *FrameError
		if errors.As(wholeErr, &frameErr) && frameErr.Offset != int64(len(seen)) {
			t.Fatalf("%v, but %d bytes were good", wholeErr, len(seen))
		}
		for _, p := range whole {
			if _, payload, d := ParseExtended([]byte(p)); !d.OK() || len(payload) > MaxStreamPayload {
				t.Fatalf("%x is a packet: %v", p, d.Err())
			}
		}
	})
}

func BenchmarkExtFrameReader(b *testing.B) {
	in, _ := extStream(MaxStreamPayload)
	f := NewExtFrameReader(&repeat{b: in})
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := f.Next(); err != nil {
			b.Fatal(err)
		}
	}
}

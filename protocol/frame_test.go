package protocol

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// frameEvents reads all frames from r. It returns one line for each header and one for each payload, however many
// pieces the payload has, and the final error.
func frameEvents(r io.Reader, p Profile, maxWords uint32) ([]string, error) {
	f := NewFrameReader(r, p, maxWords)
	var events []string
	var payload []byte
	for {
		frame, err := f.Next()
		if err != nil {
			if len(payload) > 0 {
				events = append(events, fmt.Sprintf("cut off %x", payload))
			}
			if _, again := f.Next(); again != err {
				return events, fmt.Errorf("%w, and then %w", err, again)
			}
			return events, err
		}
		if !frame.IsPayload {
			events = append(events, fmt.Sprintf("%v %x", frame.Header, frame.Bytes))
			continue
		}
		payload = append(payload, frame.Bytes...)
		if frame.Remaining == 0 {
			events = append(events, fmt.Sprintf("payload %x", payload))
			payload = payload[:0]
		}
	}
}

func stream(t testing.TB, p Profile, hs ...Header) []byte {
	t.Helper()
	var b bytes.Buffer
	for _, h := range hs {
		payload := make([]byte, h.StreamPayload())
		for i := range payload {
			payload[i] = byte(i)
		}
		if err := p.WriteFrame(&b, h, payload); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

func data(words uint32) Header { return Header{Dst: 1, Size: words, Type: Data} }

func TestFrameReader(t *testing.T) {
	request := Header{Dst: 1, Type: SendRequest}
	// The size of a packet other than DATA announces no payload.
	ack := Header{Src: 1, Size: 7, Type: Ack, Call: RecvInt}
	in := stream(t, CloudFPGA, request, data(3), data(0), ack, data(1))
	header := func(h Header) string { return fmt.Sprintf("%v %x", h, CloudFPGA.Append(nil, h)) }
	want := []string{
		header(request),
		header(data(3)), "payload 000102030405060708090a0b",
		header(data(0)),
		header(ack),
		header(data(1)), "payload 00010203",
	}
	for name, r := range map[string]io.Reader{
		"whole":          bytes.NewReader(in),
		"byte by byte":   iotest.OneByteReader(bytes.NewReader(in)),
		"halves":         iotest.HalfReader(bytes.NewReader(in)),
		"error with end": iotest.DataErrReader(bytes.NewReader(in)),
	} {
		events, err := frameEvents(r, CloudFPGA, 3)
		if err != io.EOF {
			t.Errorf("%s: ended with %v", name, err)
		}
		if strings.Join(events, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s: got\n%s\nwant\n%s", name, strings.Join(events, "\n"), strings.Join(want, "\n"))
		}
	}
}

func TestFrameReaderLongMessage(t *testing.T) {
	words := uint32(600_000)
	in := stream(t, V09, data(words))
	f := NewFrameReader(bytes.NewReader(in), V09, words)
	var got []byte
	for {
		frame, err := f.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(frame.Bytes) > FrameBuffer || len(frame.Bytes) == 0 {
			t.Fatalf("a piece of %d bytes", len(frame.Bytes))
		}
		got = append(got, frame.Bytes...)
		if want := int64(len(in) - len(got)); frame.Remaining != want {
			t.Fatalf("%d bytes are left, want %d", frame.Remaining, want)
		}
	}
	if !bytes.Equal(got, in) {
		t.Error("the bytes changed on the way")
	}
}

func TestFrameReaderErrors(t *testing.T) {
	good := stream(t, CloudFPGA, data(2))
	bad := stream(t, CloudFPGA, data(0))
	bad[20] = 1
	readErr := errors.New("cable cut")
	header := func(kind DefectKind) error { return &HeaderError{Defect{Kind: kind}} }
	for _, tt := range []struct {
		name   string
		in     io.Reader
		is     error
		text   string
		offset int64 // of the FrameError, or -1 if it is another error
	}{
		{"bad header", bytes.NewReader(append(bytes.Clone(good), bad...)), header(DefectReserved),
			"byte 40: zrlmpi header: byte 20 is 0x01", 40},
		{"no header", strings.NewReader("GET / HTTP/1.1\r\nHost: zrlmpi\r\n\r\n"), header(DefectStartMark), "byte 0:",
			0},
		{"too long", bytes.NewReader(stream(t, CloudFPGA, data(2), data(5))), nil,
			"byte 40: a message of 5 words, but the limit is 4", 40},
		{"end in a header", bytes.NewReader(append(bytes.Clone(good), bad[:31]...)), io.ErrUnexpectedEOF,
			"byte 71, 31 bytes into a header", -1},
		{"end in a payload", bytes.NewReader(good[:39]), io.ErrUnexpectedEOF,
			"byte 39, 1 bytes before the end of DATA 0→1", -1},
		{"read error", io.MultiReader(bytes.NewReader(good[:39]), iotest.ErrReader(readErr)), readErr, "cable cut", -1},
		{"no progress", idleReader{}, io.ErrNoProgress, "", -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := frameEvents(tt.in, CloudFPGA, 4)
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("the error is %v, want %v", err, tt.is)
			}
			if err == nil || !strings.Contains(err.Error(), tt.text) {
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
	_, err := frameEvents(bytes.NewReader(stream(t, CloudFPGA, data(5))), CloudFPGA, 4)
	var size *SizeError
	if !errors.As(err, &size) || size.Words != 5 || size.Max != 4 {
		t.Errorf("too many words give %v", err)
	}
}

type idleReader struct{}

func (idleReader) Read([]byte) (int, error) { return 0, nil }

func TestFrameReaderDoesNotAllocate(t *testing.T) {
	in := stream(t, CloudFPGA, Header{Type: SendRequest}, data(100))
	f := NewFrameReader(&repeat{b: in}, CloudFPGA, 100)
	if n := testing.AllocsPerRun(1000, func() {
		if _, err := f.Next(); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// repeat is a reader that returns an endless stream of the byte b.
type repeat struct {
	b  []byte
	at int
}

func (r *repeat) Read(p []byte) (int, error) {
	n := copy(p, r.b[r.at:])
	r.at = (r.at + n) % len(r.b)
	return n, nil
}

func TestWriteFrameRefusesAWrongLength(t *testing.T) {
	for _, tt := range []struct {
		h       Header
		payload int
	}{{data(2), 4}, {data(0), 4}, {data(2), 0}, {Header{Size: 1, Type: Ack}, 4}} {
		var b bytes.Buffer
		err := CloudFPGA.WriteFrame(&b, tt.h, make([]byte, tt.payload))
		var wrong *PayloadError
		if !errors.As(err, &wrong) || wrong.Length != tt.payload || b.Len() != 0 {
			t.Errorf("%v with %d bytes: wrote %d, error %v", tt.h, tt.payload, b.Len(), err)
		}
	}
}

func TestWriteFramePassesErrorsOn(t *testing.T) {
	for limit := range int64(2) {
		err := CloudFPGA.WriteFrame(&failAfter{n: limit}, data(1), make([]byte, 4))
		if !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("after %d writes: %v", limit, err)
		}
	}
}

type failAfter struct{ n int64 }

func (w *failAfter) Write(p []byte) (int, error) {
	if w.n == 0 {
		return 0, io.ErrClosedPipe
	}
	w.n--
	return len(p), nil
}

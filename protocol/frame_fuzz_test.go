package protocol

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"
)

// cutReader is a reader that returns the bytes of in in pieces. The bytes of cuts are the lengths of the pieces.
type cutReader struct {
	in, cuts []byte
	next     int
}

func (r *cutReader) Read(p []byte) (int, error) {
	if len(r.in) == 0 {
		return 0, io.EOF
	}
	n := len(r.in)
	if len(r.cuts) > 0 {
		n = 1 + int(r.cuts[r.next%len(r.cuts)])
		r.next++
	}
	n = copy(p, r.in[:min(n, len(r.in))])
	r.in = r.in[n:]
	return n, nil
}

// FuzzFrameReader checks that the result does not depend on how a stream is split in transit, and that the frames are
// exactly the bytes of the stream.
func FuzzFrameReader(f *testing.F) {
	in := stream(f, CloudFPGA, Header{Type: SendRequest}, data(3), data(0), Header{Type: Ack, Size: 9}, data(100))
	f.Add(in, []byte{0, 31, 200}, false, uint32(100))
	f.Add(in[:len(in)-1], []byte{31}, true, uint32(99))
	f.Add(append(bytes.Clone(in), 'x'), []byte{}, false, uint32(1000))
	f.Add(bytes.Repeat([]byte{Mark}, 64), []byte{5}, true, ^uint32(0))
	f.Fuzz(func(t *testing.T, in, cuts []byte, v09 bool, maxWords uint32) {
		p := CloudFPGA
		if v09 {
			p = V09
		}
		whole, wholeErr := frameEvents(bytes.NewReader(in), p, maxWords)
		cut, cutErr := frameEvents(&cutReader{in: in, cuts: cuts}, p, maxWords)
		if !slices.Equal(whole, cut) {
			t.Fatalf("whole:\n%q\ncut:\n%q", whole, cut)
		}
		if wholeErr.Error() != cutErr.Error() {
			t.Fatalf("whole: %v\ncut:   %v", wholeErr, cutErr)
		}
		var seen []byte
		r := NewFrameReader(bytes.NewReader(in), p, maxWords)
		for {
			frame, err := r.Next()
			if err != nil {
				var frameErr *FrameError
				if errors.As(err, &frameErr) && frameErr.Offset != int64(len(seen)) {
					t.Fatalf("%v, but %d bytes were good", err, len(seen))
				}
				break
			}
			if frame.Header.Type == Data && frame.Header.Size > maxWords {
				t.Fatalf("%v is over the limit of %d", frame.Header, maxWords)
			}
			seen = append(seen, frame.Bytes...)
		}
		if !bytes.HasPrefix(in, seen) {
			t.Fatal("the events are not the bytes of the stream")
		}
	})
}

package relay

import (
	"bufio"
	"bytes"
	"io"

	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/impair"
)

// maxPiece is the maximum number of payload bytes in a piece.
const maxPiece = 32 << 10

// splitter finds the packets in a stream of any profile. If there is no header where one is expected, as with TLS, it
// treats the rest of the stream as payload.
type splitter struct {
	in *bufio.Reader
	// payload is the number of payload bytes that follow. endless is true if the rest of the stream is payload.
	payload int64
	endless bool
}

func newSplitter(r io.Reader) *splitter {
	return &splitter{in: bufio.NewReaderSize(r, protocol.ExtHeaderLen+protocol.MaxStreamPayload)}
}

// next returns the next piece, owned by the caller: a header, a whole packet of the extended profile, or a part of a
// payload. The error is io.EOF at the end of the stream, or an error from the reader.
func (s *splitter) next() (impair.Kind, []byte, error) {
	if s.payload == 0 && !s.endless {
		if b, kind := s.header(); b != nil {
			return kind, b, nil
		}
		if !s.endless {
			return s.rest()
		}
	}
	return s.some()
}

// some returns the payload received so far, at most maxPiece bytes.
func (s *splitter) some() (impair.Kind, []byte, error) {
	if _, err := s.in.Peek(1); err != nil {
		return 0, nil, err
	}
	n := min(s.in.Buffered(), maxPiece)
	if !s.endless {
		n = int(min(int64(n), s.payload))
		s.payload -= int64(n)
	}
	return impair.Payload, s.take(n), nil
}

// header returns a header, or a whole packet of the extended profile. It returns nil if the stream ends before that. If
// there is no header, it sets endless and returns nil.
func (s *splitter) header() ([]byte, impair.Kind) {
	b, err := s.in.Peek(protocol.HeaderLen)
	if err != nil {
		return nil, 0
	}
	kind := impair.KindOf(b)
	if kind == impair.Payload {
		s.endless = true
		return nil, 0
	}
	if !protocol.IsExtended(b) {
		h, _ := protocol.V09.Parse(b) // KindOf has validated it
		s.payload = h.StreamPayload()
		return s.take(protocol.HeaderLen), kind
	}
	if b, err = s.in.Peek(protocol.ExtHeaderLen); err != nil {
		return nil, 0
	}
	_, payload, defect := protocol.ParseExtendedHeader(b)
	if !defect.OK() || payload > protocol.MaxStreamPayload {
		s.endless = true
		return nil, 0
	}
	n := protocol.ExtHeaderLen + int(payload)
	if _, err = s.in.Peek(n); err != nil {
		return nil, 0
	}
	return s.take(n), kind
}

// rest returns the last bytes of a stream that ends within a header. When called again, it returns the stream's error.
func (s *splitter) rest() (impair.Kind, []byte, error) {
	if n := s.in.Buffered(); n > 0 {
		return impair.Payload, s.take(n), nil
	}
	_, err := s.in.Peek(1)
	return 0, nil, err
}

func (s *splitter) take(n int) []byte {
	b, _ := s.in.Peek(n) // buffered
	b = bytes.Clone(b)
	_, _ = s.in.Discard(n)
	return b
}

package relay

import (
	"bufio"
	"bytes"
	"io"

	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/impair"
)

// maxPieceLen is the maximum number of payload bytes in a piece.
const maxPieceLen = 32 << 10

// splitter finds the packets in a stream of any profile. If it finds no header where it expects one, as with TLS, it
// treats the rest of the stream as payload.
type splitter struct {
	reader *bufio.Reader
	// payloadLeft is the number of payload bytes that follow. allPayload is set if the rest of the stream counts as
	// payload.
	payloadLeft int64
	allPayload  bool
}

func newSplitter(r io.Reader) *splitter {
	return &splitter{reader: bufio.NewReaderSize(r, protocol.ExtHeaderLen+protocol.MaxStreamPayload)}
}

// nextPiece returns the next piece, owned by the caller: a header, a whole packet of the extended profile, or a part of
// a payload. The error is io.EOF at the end of the stream, or an error from the reader.
func (s *splitter) nextPiece() (impair.Kind, []byte, error) {
	if s.payloadLeft == 0 && !s.allPayload {
		if b, kind := s.nextHeader(); b != nil {
			return kind, b, nil
		}
		if !s.allPayload {
			return s.lastBytes()
		}
	}
	return s.nextPayload()
}

// nextPayload returns the payload received so far, at most maxPieceLen bytes.
func (s *splitter) nextPayload() (impair.Kind, []byte, error) {
	if _, err := s.reader.Peek(1); err != nil {
		return 0, nil, err
	}
	n := min(s.reader.Buffered(), maxPieceLen)
	if !s.allPayload {
		n = int(min(int64(n), s.payloadLeft))
		s.payloadLeft -= int64(n)
	}
	return impair.Payload, s.consume(n), nil
}

// nextHeader returns a header, or a whole packet of the extended profile. It returns nil if the stream ends before
// either is complete. If the stream contains something else, it sets allPayload and returns nil.
func (s *splitter) nextHeader() ([]byte, impair.Kind) {
	b, err := s.reader.Peek(protocol.HeaderLen)
	if err != nil {
		return nil, 0
	}
	kind := impair.KindOf(b)
	if kind == impair.Payload {
		s.allPayload = true
		return nil, 0
	}
	if !protocol.IsExtended(b) {
		h, _ := protocol.V09.Parse(b) // KindOf has validated it
		s.payloadLeft = h.StreamPayload()
		return s.consume(protocol.HeaderLen), kind
	}
	if b, err = s.reader.Peek(protocol.ExtHeaderLen); err != nil {
		return nil, 0
	}
	_, payload, defect := protocol.ParseExtendedHeader(b)
	if !defect.OK() || payload > protocol.MaxStreamPayload {
		s.allPayload = true
		return nil, 0
	}
	n := protocol.ExtHeaderLen + int(payload)
	if _, err = s.reader.Peek(n); err != nil {
		return nil, 0
	}
	return s.consume(n), kind
}

// lastBytes returns the incomplete header at the end of a stream. The next call returns the error that ended the
// stream.
func (s *splitter) lastBytes() (impair.Kind, []byte, error) {
	if n := s.reader.Buffered(); n > 0 {
		return impair.Payload, s.consume(n), nil
	}
	_, err := s.reader.Peek(1)
	return 0, nil, err
}

func (s *splitter) consume(n int) []byte {
	b, _ := s.reader.Peek(n) // buffered
	b = bytes.Clone(b)
	_, _ = s.reader.Discard(n)
	return b
}

package protocol

import (
	"errors"
	"fmt"
	"io"
)

// streamBuffer is what the readers of streams read into. It never grows.
type streamBuffer struct {
	r   io.Reader
	buf []byte
	// buf[start:end] is what was read and not yet taken.
	start, end int
	// offset is the place in the stream of buf[start].
	offset int64
}

func newStreamBuffer(r io.Reader) streamBuffer {
	return streamBuffer{r: r, buf: make([]byte, FrameBuffer)}
}

// need reads until n bytes, at most FrameBuffer, can be taken. Its error is that
// of the reader. What is left is moved to the front only when the n bytes would
// not fit behind it.
func (s *streamBuffer) need(n int) error {
	for s.end-s.start < n {
		if s.start == s.end || s.start+n > len(s.buf) {
			s.end = copy(s.buf, s.buf[s.start:s.end])
			s.start = 0
		}
		if err := s.fill(); err != nil {
			return err
		}
	}
	return nil
}

// fill reads at least one byte.
func (s *streamBuffer) fill() error {
	// A reader that keeps returning nothing must not spin forever.
	for range 100 {
		n, err := s.r.Read(s.buf[s.end:])
		if n > 0 {
			// An error that came with the bytes comes again.
			s.end += n
			return nil
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}

// take returns the next n bytes, which must have been read.
func (s *streamBuffer) take(n int) []byte {
	b := s.buf[s.start : s.start+n : s.start+n]
	s.start += n
	s.offset += int64(n)
	return b
}

// endedInHeader explains an error of the reader that came in a header, or
// before one.
func (s *streamBuffer) endedInHeader(err error) error {
	if !errors.Is(err, io.EOF) {
		return err
	}
	if s.start == s.end {
		return io.EOF
	}
	return fmt.Errorf("zrlmpi stream: ends at byte %d, %d bytes into a header: %w",
		s.offset+int64(s.end-s.start), s.end-s.start, io.ErrUnexpectedEOF)
}

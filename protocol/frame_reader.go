package protocol

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// FrameBuffer is the size of a FrameReader's buffer in bytes, and the maximum length of a piece of payload that it
// returns. A FrameReader never allocates more than this buffer, whatever length a header announces.
const FrameBuffer = 64 << 10

// FrameReader splits a stream into headers and pieces of payload.
type FrameReader struct {
	reader *bufio.Reader
	// offset is the number of bytes of the stream consumed so far.
	offset   int64
	profile  Profile
	maxWords uint32
	// current is the header that was read last, and remaining is the number of bytes of its payload that have not been
	// read yet.
	current   Header
	remaining int64
	err       error
}

// NewFrameReader returns a FrameReader that reads packets from r. It rejects DATA headers that announce more than
// maxWords words.
func NewFrameReader(r io.Reader, profile Profile, maxWords uint32) *FrameReader {
	return &FrameReader{reader: bufio.NewReaderSize(r, FrameBuffer), profile: profile, maxWords: maxWords}
}

// Frame is a header, or a piece of the payload that follows it.
type Frame struct {
	// Header is the header itself, or the header of the packet that the payload belongs to.
	Header Header
	// IsPayload is set if the Frame is a piece of payload, and not a header.
	IsPayload bool
	// Bytes holds the HeaderLen bytes of the header, or 1 to FrameBuffer bytes of payload. It is valid until the next
	// call of Next.
	Bytes []byte
	// Remaining is the number of payload bytes of the packet that follow this Frame.
	Remaining int64
}

// Next waits for the next header or piece of payload. The division of a payload into pieces depends on timing and has
// no meaning.
//
// If the stream ends between two packets, the error is io.EOF. If it ends inside a packet, the error wraps
// io.ErrUnexpectedEOF. If the stream is invalid, the error is a *FrameError. Any other error comes from the underlying
// reader. After an error, Next always returns the same error.
func (f *FrameReader) Next() (Frame, error) {
	if f.err != nil {
		return Frame{}, f.err
	}
	var frame Frame
	if f.remaining > 0 {
		frame, f.err = f.readPayload()
	} else {
		frame, f.err = f.readHeader()
	}
	return frame, f.err
}

// readHeader validates the length of the payload before it consumes the header, so that a hostile length is an error at
// the header's offset.
func (f *FrameReader) readHeader() (Frame, error) {
	b, err := f.reader.Peek(HeaderLen)
	if err != nil {
		return Frame{}, f.endError(err, len(b))
	}
	header, defect := f.profile.Parse(b)
	if !defect.OK() {
		return Frame{}, &FrameError{Offset: f.offset, Err: defect.Err()}
	}
	if header.Type == Data && header.Size > f.maxWords {
		return Frame{}, &FrameError{Offset: f.offset, Err: &SizeError{Words: header.Size, Max: f.maxWords}}
	}
	f.consume(len(b))
	f.current, f.remaining = header, header.StreamPayload()
	return Frame{Header: header, Bytes: b, Remaining: f.remaining}, nil
}

func (f *FrameReader) readPayload() (Frame, error) {
	if _, err := f.reader.Peek(1); err != nil {
		return Frame{}, f.endError(err, 0)
	}
	// Take all of the payload that is buffered, so that no further read is needed.
	b, _ := f.reader.Peek(int(min(f.remaining, int64(f.reader.Buffered()))))
	f.consume(len(b))
	f.remaining -= int64(len(b))
	return Frame{Header: f.current, IsPayload: true, Bytes: b, Remaining: f.remaining}, nil
}

// consume marks as read the first n bytes that Peek has returned. They remain valid until the next read.
func (f *FrameReader) consume(n int) {
	_, _ = f.reader.Discard(n) // the bytes are buffered
	f.offset += int64(n)
}

// endError converts an error of the underlying reader to the error that Next returns. The parameter have is the number
// of bytes of a header that were read before the error.
func (f *FrameReader) endError(err error, have int) error {
	switch {
	case !errors.Is(err, io.EOF):
		return err
	case f.remaining > 0:
		return fmt.Errorf("zrlmpi stream: ends at byte %d, %d bytes before the end of %v: %w",
			f.offset, f.remaining, f.current, io.ErrUnexpectedEOF)
	case have == 0:
		return io.EOF
	}
	return fmt.Errorf("zrlmpi stream: ends at byte %d, %d bytes into a header: %w", f.offset+int64(have), have,
		io.ErrUnexpectedEOF)
}

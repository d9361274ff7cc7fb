package protocol

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// ExtFrameReader splits a stream into whole packets of the extended profile.
type ExtFrameReader struct {
	streamBuffer
	header ExtHeader // of the packet that is examined
	err    error
}

// NewExtFrameReader returns a reader of the packets on r. Its buffer of
// FrameBuffer bytes, which holds any packet, is all that it ever allocates.
func NewExtFrameReader(r io.Reader) *ExtFrameReader {
	return &ExtFrameReader{streamBuffer: newStreamBuffer(r)}
}

// Next waits for the next packet, header and payload, which is good for
// ParseExtended and valid until the next call of Next. Errors are those of
// FrameReader.Next, each of them final. A *FrameError holds a *HeaderError, or a
// *StreamPayloadError for a payload that a stream does not carry; it comes as
// soon as the header shows it, and not when the payload has arrived.
func (f *ExtFrameReader) Next() ([]byte, error) {
	if f.err != nil {
		return nil, f.err
	}
	var packet []byte
	packet, f.err = f.packet()
	return packet, f.err
}

func (f *ExtFrameReader) packet() ([]byte, error) {
	if err := f.need(ExtHeaderLen); err != nil {
		return nil, f.endedInHeader(err)
	}
	header := f.buf[f.start : f.start+ExtHeaderLen]
	if d := checkExtFrame(header); !d.OK() {
		return nil, &FrameError{Offset: f.offset, Err: d.Err()}
	}
	payload := binary.LittleEndian.Uint32(header[offPayload:])
	if payload > MaxStreamPayload {
		return nil, &FrameError{Offset: f.offset, Err: &StreamPayloadError{Bytes: payload}}
	}
	length := ExtHeaderLen + int(payload)
	if err := f.need(length); err != nil {
		return nil, f.endedInPacket(err, length)
	}
	whole := f.buf[f.start : f.start+length]
	if _, ok := f.header.Parse(whole); !ok {
		_, _, d := ParseExtended(whole)
		return nil, &FrameError{Offset: f.offset, Err: d.Err()}
	}
	return f.take(length), nil
}

func (f *ExtFrameReader) endedInPacket(err error, length int) error {
	if !errors.Is(err, io.EOF) {
		return err
	}
	have := f.end - f.start
	return fmt.Errorf("zrlmpi stream: ends at byte %d, %d bytes before the end of a packet: %w",
		f.offset+int64(have), length-have, io.ErrUnexpectedEOF)
}

// StreamPayloadError says that a packet of the extended profile announces more
// payload than packets on a stream have.
type StreamPayloadError struct{ Bytes uint32 }

// Error gives both numbers.
func (e *StreamPayloadError) Error() string {
	return fmt.Sprintf("a packet with %d bytes of payload, but on a stream it has at most %d", e.Bytes, MaxStreamPayload)
}

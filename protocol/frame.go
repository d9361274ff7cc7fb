package protocol

import "fmt"

// On a TCP stream, a DATA packet consists of its header and size × 4 bytes of payload, without padding. All other
// packets consist of a header alone, whatever their size field is. The protocol page covers only UDP, and upstream does
// not support TCP, so only zrlmpid uses this framing.

// StreamPayload returns the number of payload bytes that follow the header h on a stream.
func (h Header) StreamPayload() int64 {
	if h.Type != Data {
		return 0
	}
	return int64(h.Size) * WordLen
}

// CheckStreamPayload returns a *PayloadError if the given length, in bytes, differs from the size in the header h.
// After a payload of the wrong length, the receiver could not find the next header.
func (h Header) CheckStreamPayload(length int) error {
	if int64(length) != h.StreamPayload() {
		return &PayloadError{Header: h, Length: length}
	}
	return nil
}

// FrameError reports an invalid header on a stream. The rest of the stream cannot be decoded, so the caller should
// close the stream.
type FrameError struct {
	// Offset is the position, in bytes, at which the invalid header begins in the stream.
	Offset int64
	// Err describes the error. It is a *HeaderError, a *SizeError, or a *StreamPayloadError.
	Err error
}

// Error describes the error and its position.
func (e *FrameError) Error() string {
	return fmt.Sprintf("zrlmpi stream: byte %d: %v", e.Offset, e.Err)
}

// Unwrap returns Err.
func (e *FrameError) Unwrap() error { return e.Err }

// StreamPayloadError reports a packet of the extended profile whose header announces more payload than a packet on a
// stream may have.
type StreamPayloadError struct{ Bytes uint32 }

// Error describes the length and the limit.
func (e *StreamPayloadError) Error() string {
	return fmt.Sprintf("a packet with %d bytes of payload, but on a stream it has at most %d", e.Bytes,
		MaxStreamPayload)
}

// SizeError reports a DATA header with more words than the reader accepts.
type SizeError struct {
	Words, Max uint32
}

// Error describes the size and the limit.
func (e *SizeError) Error() string {
	return fmt.Sprintf("a message of %d words, but the limit is %d: raise the limit, or send less at a time", e.Words,
		e.Max)
}

// PayloadError reports that a payload was not sent because its length differs from the size that its header announces.
type PayloadError struct {
	Header Header
	// Length is the actual length of the payload in bytes.
	Length int
}

// Error describes the header and both lengths.
func (e *PayloadError) Error() string {
	return fmt.Sprintf("%v goes with %d bytes of payload on a stream, not with %d", e.Header, e.Header.StreamPayload(),
		e.Length)
}

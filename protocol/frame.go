package protocol

import "fmt"

// On a TCP stream, a packet is its header, followed after a DATA header by size × 4 bytes of payload. There is no
// padding, and no other packet has a payload, whatever its size field. The protocol page covers UDP only and upstream
// has no TCP: this framing is ours, and only our nodes speak it.

// StreamPayload returns the number of payload bytes that follow h on a stream.
func (h Header) StreamPayload() int64 {
	if h.Type != Data {
		return 0
	}
	return int64(h.Size) * WordLen
}

// CheckStreamPayload returns a *PayloadError if length, in bytes, differs from the size in h: such a payload would
// shift all that follows on the stream.
func (h Header) CheckStreamPayload(length int) error {
	if int64(length) != h.StreamPayload() {
		return &PayloadError{Header: h, Length: length}
	}
	return nil
}

// FrameError reports that a stream is invalid at a certain byte. Nothing after it can be decoded: close the stream.
type FrameError struct {
	// Offset is the position of the offending header in the stream, in bytes.
	Offset int64
	// Err is a *HeaderError, a *SizeError, or a *StreamPayloadError.
	Err error
}

// Error returns the position and the fault.
func (e *FrameError) Error() string {
	return fmt.Sprintf("zrlmpi stream: byte %d: %v", e.Offset, e.Err)
}

// Unwrap returns the fault.
func (e *FrameError) Unwrap() error { return e.Err }

// StreamPayloadError reports a packet of the extended profile whose header announces more payload than a packet on a
// stream may have.
type StreamPayloadError struct{ Bytes uint32 }

// Error returns the length and the limit.
func (e *StreamPayloadError) Error() string {
	return fmt.Sprintf("a packet with %d bytes of payload, but on a stream it has at most %d", e.Bytes,
		MaxStreamPayload)
}

// SizeError reports a DATA header with more words than the reader accepts.
type SizeError struct {
	Words, Max uint32
}

// Error returns the size and the limit.
func (e *SizeError) Error() string {
	return fmt.Sprintf("a message of %d words, but the limit is %d: raise the limit, or send less at a time", e.Words,
		e.Max)
}

// PayloadError reports a payload to be sent whose length differs from the size in its header. Nothing was sent.
type PayloadError struct {
	Header Header
	// Length of the payload in bytes.
	Length int
}

// Error returns both lengths.
func (e *PayloadError) Error() string {
	return fmt.Sprintf("%v goes with %d bytes of payload on a stream, not with %d", e.Header, e.Header.StreamPayload(),
		e.Length)
}

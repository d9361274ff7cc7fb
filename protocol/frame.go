package protocol

import "fmt"

// On a TCP stream a packet is its header, and behind a DATA header size × 4
// bytes of payload. There is no padding, and no other packet carries anything,
// whatever its size field says. The protocol page knows UDP only and upstream
// has no TCP: this framing is ours, and so is every node that speaks it.

// StreamPayload returns the number of payload bytes that follow h on a stream.
func (h Header) StreamPayload() int64 {
	if h.Type != Data {
		return 0
	}
	return int64(h.Size) * WordLen
}

// CheckStreamPayload reports, as a *PayloadError, a payload whose length in
// bytes is not what h says: it would shift everything behind it on the stream.
func (h Header) CheckStreamPayload(length int) error {
	if int64(length) != h.StreamPayload() {
		return &PayloadError{Header: h, Length: length}
	}
	return nil
}

// FrameError says that a stream is invalid at a certain byte. Nothing
// behind that byte can be distinguished any more: close the stream.
type FrameError struct {
	// Offset is the place in the stream, in bytes, of the header at fault.
	Offset int64
	// Err is a *HeaderError, a *SizeError, or a *StreamPayloadError.
	Err error
}

// Error names the place and the fault.
func (e *FrameError) Error() string {
	return fmt.Sprintf("zrlmpi stream: byte %d: %v", e.Offset, e.Err)
}

// Unwrap returns the fault.
func (e *FrameError) Unwrap() error { return e.Err }

// StreamPayloadError says that a packet of the extended profile announces more
// payload than packets on a stream have.
type StreamPayloadError struct{ Bytes uint32 }

// Error gives both numbers.
func (e *StreamPayloadError) Error() string {
	return fmt.Sprintf("a packet with %d bytes of payload, but on a stream it has at most %d", e.Bytes, MaxStreamPayload)
}

// SizeError says that a DATA header announces more words than the reader takes.
type SizeError struct {
	Words, Max uint32
}

// Error gives both numbers.
func (e *SizeError) Error() string {
	return fmt.Sprintf("a message of %d words, but the limit is %d: raise the limit, or send less at a time", e.Words, e.Max)
}

// PayloadError says that a sender's payload does not have the length that its
// header says. Nothing was sent.
type PayloadError struct {
	Header Header
	// Length is that of the payload, in bytes.
	Length int
}

// Error gives both lengths.
func (e *PayloadError) Error() string {
	return fmt.Sprintf("%v goes with %d bytes of payload on a stream, not with %d", e.Header, e.Header.StreamPayload(), e.Length)
}

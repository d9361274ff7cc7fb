package wire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Version is the version of the attach protocol. Clients and servers accept no other version.
const Version = 5

// magic begins every HELLO, so that a program connected to the wrong socket gets an error.
const magic = "ZRLMPIAT"

// FrameType is the type of a frame.
type FrameType uint8

// Types of frames. The encodings of HELLO and REFUSED are the same in all versions of the protocol.
const (
	FrameHello FrameType = 1 + iota
	FrameWelcome
	FramePeer
	FrameRefused
	FrameStart
	FrameData
	FrameDone
	FrameCancel
	FrameAbort
	FrameProbe
	FrameBye
	FrameCall
	FrameReduce
	FrameReduced
	numFrames
)

var frameNames = [numFrames]string{"", "HELLO", "WELCOME", "PEER", "REFUSED", "START", "DATA", "DONE", "CANCEL",
	"ABORT", "PROBE", "BYE", "CALL", "REDUCE", "REDUCED"}

// String returns the name used in the specification.
func (t FrameType) String() string {
	if t > 0 && t < numFrames {
		return frameNames[t]
	}
	return fmt.Sprintf("frame(%d)", uint8(t))
}

const (
	// FrameHeaderLen is the length of a frame's header in bytes.
	FrameHeaderLen = 8
	// ChunkLen is the maximum length of the payload in one frame, in bytes. It limits how long a small operation has to
	// wait while a large one is being sent.
	ChunkLen = 256 << 10
	// MaxBody is the maximum length in bytes of a frame's body, which consists of fields and payload.
	MaxBody = ChunkLen + 64<<10
	// MaxText is the maximum length of a text in a frame, in bytes.
	MaxText = 4 << 10
)

// Order is the byte order of all numbers in frames.
var Order = binary.LittleEndian

// ProtocolError reports that a frame violates the protocol. The sender of the frame is disconnected.
type ProtocolError struct{ text string }

func (e *ProtocolError) Error() string { return e.text }

// Violationf returns a ProtocolError with the given text.
func Violationf(format string, args ...any) error {
	return &ProtocolError{fmt.Sprintf(format, args...)}
}

// AppendHeader appends the header of a frame whose body is length bytes long.
func AppendHeader(b []byte, t FrameType, length int) []byte {
	b = Order.AppendUint32(b, uint32(length))
	return append(b, byte(t), 0, 0, 0)
}

// controlAnswer is the beginning of the HTTP response with which a daemon's control socket answers HELLO. No valid
// frame can begin with it, because the frame would be too long.
const controlAnswer = "HTTP/1.1"

// ErrControlSocket is returned when the path passed to Dial belongs to a daemon's control socket rather than its attach
// socket.
var ErrControlSocket = errors.New("that is a daemon's control socket")

// Reader splits a stream into frames.
type Reader struct {
	source io.Reader
	br     *bufio.Reader
	// readAheadLen is the maximum number of bytes read into the buffer at a time.
	readAheadLen int
	// ready returns nil if n more bytes can be read in addition to those in the buffer, ErrNoData if they may still
	// arrive, and otherwise the reason why they will not. It is nil if reads block.
	ready     func(n int) error
	Type      FrameType
	Remaining int // number of unread bytes of the frame's body
}

// peekLen is the maximum argument of NextBytes.
const peekLen = 64 << 10

// directLen is the minimum length of payload that is read directly into its destination, bypassing the buffer.
const directLen = 4 << 10

// NewReader returns a Reader for a stream whose reads block.
func NewReader(r io.Reader) *Reader {
	in := &Reader{source: r, readAheadLen: peekLen}
	in.br = bufio.NewReaderSize((*readAhead)(in), peekLen)
	return in
}

// readAhead is the reader that fills the buffer.
type readAhead Reader

func (r *readAhead) Read(b []byte) (int, error) {
	return r.source.Read(b[:min(len(b), r.readAheadLen)])
}

// Next reads the header of the next frame. It returns io.EOF if the stream ends between two frames.
func (r *Reader) Next() error {
	if err := r.CheckEnd(); err != nil {
		return err
	}
	b, err := r.br.Peek(FrameHeaderLen)
	if err != nil {
		if len(b) > 0 && errors.Is(err, io.EOF) {
			return io.ErrUnexpectedEOF
		}
		return err
	}
	if string(b) == controlAnswer {
		return ErrControlSocket
	}
	length := Order.Uint32(b)
	r.Type = FrameType(b[4])
	switch {
	case b[5] != 0 || b[6] != 0 || b[7] != 0:
		return Violationf("bytes 5 to 7 of the header of %v are not zero", r.Type)
	case length > MaxBody:
		return Violationf("%v of %d bytes: a frame has %d at most", r.Type, length, MaxBody)
	}
	r.Remaining = int(length)
	_, err = r.br.Discard(FrameHeaderLen)
	return err
}

// SetSource replaces the stream from which frames are read.
func (r *Reader) SetSource(from io.Reader) { r.source = from }

// UseRings makes the Reader read frames from rings. FrameReady then reports a frame only after it has been received in
// full.
func (r *Reader) UseRings(from Rings) { r.ready, r.readAheadLen = from.Ready, directLen }

// UseSocket makes the Reader read from a socket whose reads do not block. The Reader buffers a frame until it has been
// received in full.
func (r *Reader) UseSocket() {
	r.br = bufio.NewReaderSize(r.br, FrameHeaderLen+MaxBody)
	r.ready = func(n int) error {
		_, err := r.br.Peek(r.br.Buffered() + n)
		return err
	}
}

// FrameReady returns nil if the next frame can be read without blocking, because it has been received in full or is
// invalid. Otherwise it returns ErrNoData, or the reason why the frame will never arrive.
func (r *Reader) FrameReady() error {
	if r.ready == nil {
		return nil
	}
	if err := r.canRead(FrameHeaderLen); err != nil {
		if r.br.Buffered() > 0 {
			err = unexpectedEOF(err)
		}
		return err
	}
	b, err := r.br.Peek(FrameHeaderLen)
	if err != nil {
		return err
	}
	if length := Order.Uint32(b); length <= MaxBody {
		return unexpectedEOF(r.canRead(FrameHeaderLen + int(length)))
	}
	return nil
}

// canRead returns nil if n bytes can be read without blocking.
func (r *Reader) canRead(n int) error {
	if n -= r.br.Buffered(); n > 0 {
		return r.ready(n)
	}
	return nil
}

// CheckEnd returns an error unless the whole frame has been read.
func (r *Reader) CheckEnd() error {
	if r.Remaining > 0 {
		return Violationf("%v has %d bytes too many", r.Type, r.Remaining)
	}
	return nil
}

// NextBytes returns the next n bytes of the body. They are valid until the next call of a method.
func (r *Reader) NextBytes(n int) ([]byte, error) {
	if n > r.Remaining {
		return nil, Violationf("%v is %d bytes too short", r.Type, n-r.Remaining)
	}
	if n > peekLen {
		return nil, Violationf("%v has a field of %d bytes: at most %d are allowed", r.Type, n, peekLen)
	}
	b, err := r.br.Peek(n)
	if err != nil {
		return nil, unexpectedEOF(err)
	}
	r.Remaining -= n
	_, err = r.br.Discard(n)
	return b, err
}

// Read fills dst with the next bytes of the body.
func (r *Reader) Read(dst []byte) error {
	if len(dst) > r.Remaining {
		return Violationf("%v is %d bytes too short", r.Type, len(dst)-r.Remaining)
	}
	for len(dst) > 0 {
		from := r.source
		if r.br.Buffered() > 0 || len(dst) < directLen {
			from = r.br
		}
		n, err := from.Read(dst)
		r.Remaining -= n
		if err != nil {
			return unexpectedEOF(err)
		}
		dst = dst[n:]
	}
	return nil
}

// Skip discards the rest of the body.
func (r *Reader) Skip() error {
	n, err := r.br.Discard(r.Remaining)
	r.Remaining -= n
	return unexpectedEOF(err)
}

// Text returns the rest of the body as text.
func (r *Reader) Text() (string, error) {
	if r.Remaining > MaxText {
		return "", Violationf("%v has a text of %d bytes: at most %d are allowed", r.Type, r.Remaining, MaxText)
	}
	b, err := r.NextBytes(r.Remaining)
	return string(b), err
}

// unexpectedEOF replaces io.EOF with io.ErrUnexpectedEOF, for a stream that ends within a frame.
func unexpectedEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// ClipText shortens s to at most MaxText bytes.
func ClipText(s string) string {
	const cut = " …"
	if len(s) > MaxText {
		return s[:MaxText-len(cut)] + cut
	}
	return s
}

// ErrDetached means that the program has detached by sending BYE.
var ErrDetached = errors.New("detached cleanly")

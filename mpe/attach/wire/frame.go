package wire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Version is the version of the attach protocol. Clients and servers accept no other.
const Version = 5

// magic begins HELLO, so that a program connected to the wrong socket gets an error.
const magic = "ZRLMPIAT"

// FrameType is the type of a frame.
type FrameType uint8

// Types of frames. HELLO and REFUSED are the same in every version.
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

// String returns the name that the specification uses.
func (t FrameType) String() string {
	if t > 0 && t < numFrames {
		return frameNames[t]
	}
	return fmt.Sprintf("frame(%d)", uint8(t))
}

const (
	// FrameHeaderLen is the length in bytes of a frame's header.
	FrameHeaderLen = 8
	// ChunkLen is the limit of payload in one frame, in bytes. It bounds how long a small operation waits for a large
	// one.
	ChunkLen = 256 << 10
	// MaxBody is the limit of a frame's body in bytes: the fields and the payload.
	MaxBody = ChunkLen + 64<<10
	// MaxText is the limit of a text in a frame, in bytes.
	MaxText = 4 << 10
)

// Order is the byte order of all numbers.
var Order = binary.LittleEndian

// ProtocolError reports a frame that violates the protocol. Its sender is disconnected.
type ProtocolError struct{ text string }

func (e *ProtocolError) Error() string { return e.text }

// Violationf returns a ProtocolError.
func Violationf(format string, args ...any) error {
	return &ProtocolError{fmt.Sprintf(format, args...)}
}

// AppendHeader appends the header of a frame whose body has length bytes.
func AppendHeader(b []byte, t FrameType, length int) []byte {
	b = Order.AppendUint32(b, uint32(length))
	return append(b, byte(t), 0, 0, 0)
}

// controlAnswer begins the answer of a daemon's control socket to HELLO, which is HTTP. No valid frame begins like
// this: it would be too long.
const controlAnswer = "HTTP/1.1"

// ErrControlSocket means that Dial was given the path of a daemon's control socket.
var ErrControlSocket = errors.New("that is a daemon's control socket")

// Reader splits a stream into frames.
type Reader struct {
	from io.Reader
	br   *bufio.Reader
	// ahead is the number of bytes read at a time where payload may follow.
	ahead int
	// ready returns nil if n bytes can be read in addition to the buffered ones, ErrNothing if they may still arrive,
	// and otherwise the reason why they will not. It is nil if reads block.
	ready func(n int) error
	Type  FrameType
	Left  int // unread bytes of the frame's body
}

// peekLen is the limit of Take.
const peekLen = 64 << 10

// directLen is the shortest part of a payload that is read without the buffer.
const directLen = 4 << 10

// NewReader returns a Reader of a stream with blocking reads.
func NewReader(r io.Reader) *Reader {
	in := &Reader{from: r, ahead: peekLen}
	in.br = bufio.NewReaderSize((*readAhead)(in), peekLen)
	return in
}

// readAhead is the source of the buffer.
type readAhead Reader

func (r *readAhead) Read(b []byte) (int, error) { return r.from.Read(b[:min(len(b), r.ahead)]) }

// Next reads the next frame's header. It returns io.EOF if the stream ended between two frames.
func (r *Reader) Next() error {
	if err := r.End(); err != nil {
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
	r.Left = int(length)
	_, err = r.br.Discard(FrameHeaderLen)
	return err
}

// From replaces the stream from which frames are read.
func (r *Reader) From(from io.Reader) { r.from = from }

// FromRings switches to frames in rings, which are read once they are there as a whole.
func (r *Reader) FromRings(from Rings) { r.ready, r.ahead = from.Ready, directLen }

// FromSocket switches to a socket with non-blocking reads. Frames are buffered until they are whole.
func (r *Reader) FromSocket() {
	r.br = bufio.NewReaderSize(r.br, FrameHeaderLen+MaxBody)
	r.ready = func(n int) error {
		_, err := r.br.Peek(r.br.Buffered() + n)
		return err
	}
}

// Whole returns nil if the next frame can be read without blocking, because it is there as a whole or is invalid.
// Otherwise it returns ErrNothing, or the reason why the frame will not arrive.
func (r *Reader) Whole() error {
	if r.ready == nil {
		return nil
	}
	if err := r.have(FrameHeaderLen); err != nil {
		if r.br.Buffered() > 0 {
			err = cutOff(err)
		}
		return err
	}
	b, err := r.br.Peek(FrameHeaderLen)
	if err != nil {
		return err
	}
	if length := Order.Uint32(b); length <= MaxBody {
		return cutOff(r.have(FrameHeaderLen + int(length)))
	}
	return nil
}

// have returns nil if n bytes can be read without blocking.
func (r *Reader) have(n int) error {
	if n -= r.br.Buffered(); n > 0 {
		return r.ready(n)
	}
	return nil
}

// End returns an error unless the whole frame has been read.
func (r *Reader) End() error {
	if r.Left > 0 {
		return Violationf("%v has %d bytes too many", r.Type, r.Left)
	}
	return nil
}

// Take returns the next n bytes of the body. They are valid until the next call.
func (r *Reader) Take(n int) ([]byte, error) {
	if n > r.Left {
		return nil, Violationf("%v is %d bytes too short", r.Type, n-r.Left)
	}
	if n > peekLen {
		return nil, Violationf("%v has a field of %d bytes: at most %d are allowed", r.Type, n, peekLen)
	}
	b, err := r.br.Peek(n)
	if err != nil {
		return nil, cutOff(err)
	}
	r.Left -= n
	_, err = r.br.Discard(n)
	return b, err
}

// Read fills dst from the body.
func (r *Reader) Read(dst []byte) error {
	if len(dst) > r.Left {
		return Violationf("%v is %d bytes too short", r.Type, len(dst)-r.Left)
	}
	for len(dst) > 0 {
		from := r.from
		if r.br.Buffered() > 0 || len(dst) < directLen {
			from = r.br
		}
		n, err := from.Read(dst)
		r.Left -= n
		if err != nil {
			return cutOff(err)
		}
		dst = dst[n:]
	}
	return nil
}

// Skip discards the rest of the body.
func (r *Reader) Skip() error {
	n, err := r.br.Discard(r.Left)
	r.Left -= n
	return cutOff(err)
}

// Text returns the rest of the body as a text.
func (r *Reader) Text() (string, error) {
	if r.Left > MaxText {
		return "", Violationf("%v has a text of %d bytes: at most %d are allowed", r.Type, r.Left, MaxText)
	}
	b, err := r.Take(r.Left)
	return string(b), err
}

// cutOff turns the end of a stream within a frame into io.ErrUnexpectedEOF.
func cutOff(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Clip shortens a text to MaxText.
func Clip(s string) string {
	const cut = " …"
	if len(s) > MaxText {
		return s[:MaxText-len(cut)] + cut
	}
	return s
}

// ErrBye means that the program has sent BYE.
var ErrBye = errors.New("detached cleanly")

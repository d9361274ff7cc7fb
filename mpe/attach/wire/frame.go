package wire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Version is the version of the protocol, the only one that clients and servers speak.
const Version = 5

// magic begins HELLO, so that a program that has the wrong socket gets an error.
const magic = "ZRLMPIAT"

// FrameType is what a frame says.
type FrameType uint8

// The frames. HELLO and REFUSED are the same in every version.
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

var frameNames = [numFrames]string{"", "HELLO", "WELCOME", "PEER", "REFUSED", "START", "DATA", "DONE", "CANCEL", "ABORT", "PROBE", "BYE", "CALL", "REDUCE", "REDUCED"}

// String returns the name that the specification uses.
func (t FrameType) String() string {
	if t > 0 && t < numFrames {
		return frameNames[t]
	}
	return fmt.Sprintf("frame(%d)", uint8(t))
}

const (
	// FrameHeaderLen is the length in bytes of what every frame begins with.
	FrameHeaderLen = 8
	// ChunkLen is the most payload that one frame carries, in bytes: small
	// operations wait no longer than that many bytes behind a large one.
	ChunkLen = 256 << 10
	// MaxBody is the longest body of a frame: payload and what precedes it.
	MaxBody = ChunkLen + 64<<10
	// MaxText is the longest text in a frame, in bytes.
	MaxText = 4 << 10
)

// Order is the byte order of all numbers.
var Order = binary.LittleEndian

// ProtocolError is a frame that breaks the rules. Who sent it is disconnected.
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

// controlAnswer is what a daemon's control socket answers to HELLO begins with: it speaks HTTP. No frame is as long.
const controlAnswer = "HTTP/1.1"

// ErrControlSocket: Dial was given the path of a daemon's control socket.
var ErrControlSocket = errors.New("that is a daemon's control socket")

// Reader splits a stream into frames.
type Reader struct {
	from io.Reader
	br   *bufio.Reader
	// ahead is how many bytes are read at a time that may be payload.
	ahead int
	// ready returns nil if n bytes more than are buffered can be read, errNothing if they may come, and otherwise why
	// they never will. It is nil where reads wait.
	ready func(n int) error
	Type  FrameType
	Left  int // of the body of the frame
}

// peekLen is the longest run of bytes that take returns.
const peekLen = 64 << 10

// directLen is how long a part of a payload is that is not read by way of the buffer, at least.
const directLen = 4 << 10

// NewReader returns a Reader of a stream whose reads wait.
func NewReader(r io.Reader) *Reader {
	in := &Reader{from: r, ahead: peekLen}
	in.br = bufio.NewReaderSize((*readAhead)(in), peekLen)
	return in
}

// readAhead is what the buffer is filled from.
type readAhead Reader

func (r *readAhead) Read(b []byte) (int, error) { return r.from.Read(b[:min(len(b), r.ahead)]) }

// Next reads the header of the next frame. It returns io.EOF if the stream ended between two frames.
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

// FromRings has frames read from memory, where they are left until they have come as a whole.
func (r *Reader) FromRings(from Rings) { r.ready, r.ahead = from.Ready, directLen }

// FromSocket has frames read from a socket whose reads do not wait: there, they are buffered.
func (r *Reader) FromSocket() {
	r.br = bufio.NewReaderSize(r.br, FrameHeaderLen+MaxBody)
	r.ready = func(n int) error {
		_, err := r.br.Peek(r.br.Buffered() + n)
		return err
	}
}

// Whole returns nil if the next frame can be read without waiting, because it has come as a whole or breaks a rule, and
// otherwise errNothing, or why it will not come.
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

// have returns nil if n bytes can be read without waiting.
func (r *Reader) have(n int) error {
	if n -= r.br.Buffered(); n > 0 {
		return r.ready(n)
	}
	return nil
}

// End checks that all of the frame has been read.
func (r *Reader) End() error {
	if r.Left > 0 {
		return Violationf("%v has %d bytes too many", r.Type, r.Left)
	}
	return nil
}

// Take returns the next n bytes of the body, which are valid until the next call.
func (r *Reader) Take(n int) ([]byte, error) {
	if n > r.Left {
		return nil, Violationf("%v is %d bytes too short", r.Type, n-r.Left)
	}
	if n > peekLen {
		return nil, Violationf("%v has a field of %d bytes: the longest has %d", r.Type, n, peekLen)
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

// Skip throws the rest of the body away.
func (r *Reader) Skip() error {
	n, err := r.br.Discard(r.Left)
	r.Left -= n
	return cutOff(err)
}

// Text returns the rest of the body, which is a text.
func (r *Reader) Text() (string, error) {
	if r.Left > MaxText {
		return "", Violationf("%v has a text of %d bytes: the longest has %d", r.Type, r.Left, MaxText)
	}
	b, err := r.Take(r.Left)
	return string(b), err
}

// cutOff is the error of a stream that ended in the middle of a frame.
func cutOff(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Clip shortens a text to what a frame may carry.
func Clip(s string) string {
	const cut = " …"
	if len(s) > MaxText {
		return s[:MaxText-len(cut)] + cut
	}
	return s
}

// ErrBye: the program has sent BYE.
var ErrBye = errors.New("detached cleanly")

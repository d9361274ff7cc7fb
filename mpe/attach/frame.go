package attach

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

// frameType is what a frame says.
type frameType uint8

// The frames. HELLO and REFUSED are the same in every version.
const (
	frameHello frameType = 1 + iota
	frameWelcome
	framePeer
	frameRefused
	frameStart
	frameData
	frameDone
	frameCancel
	frameAbort
	frameProbe
	frameBye
	frameCall
	frameReduce
	frameReduced
	numFrames
)

var frameNames = [numFrames]string{"", "HELLO", "WELCOME", "PEER", "REFUSED", "START", "DATA", "DONE", "CANCEL", "ABORT", "PROBE", "BYE", "CALL", "REDUCE", "REDUCED"}

// String returns the name that the specification uses.
func (t frameType) String() string {
	if t > 0 && t < numFrames {
		return frameNames[t]
	}
	return fmt.Sprintf("frame(%d)", uint8(t))
}

const (
	// frameHeaderLen is the length in bytes of what every frame begins with.
	frameHeaderLen = 8
	// chunkLen is the most payload that one frame carries, in bytes: small
	// operations wait no longer than that many bytes behind a large one.
	chunkLen = 256 << 10
	// maxBody is the longest body of a frame: payload and what precedes it.
	maxBody = chunkLen + 64<<10
	// maxText is the longest text in a frame, in bytes.
	maxText = 4 << 10
)

var order = binary.LittleEndian

// protocolError is a frame that breaks the rules. Who sent it is disconnected.
type protocolError struct{ text string }

func (e *protocolError) Error() string { return e.text }

func violation(format string, args ...any) error {
	return &protocolError{fmt.Sprintf(format, args...)}
}

// appendHeader appends the header of a frame whose body has length bytes.
func appendHeader(b []byte, t frameType, length int) []byte {
	b = order.AppendUint32(b, uint32(length))
	return append(b, byte(t), 0, 0, 0)
}

// controlAnswer is what a daemon's control socket answers to HELLO begins with: it speaks HTTP.
// No frame is as long.
const controlAnswer = "HTTP/1.1"

// ErrControlSocket: Dial was given the path of a daemon's control socket.
var ErrControlSocket = errors.New("that is a daemon's control socket")

// frameReader splits a stream into frames.
type frameReader struct {
	from io.Reader
	br   *bufio.Reader
	// ahead is how many bytes are read at a time that may be payload.
	ahead int
	// ready returns nil if n bytes more than are buffered can be read, errNothing if they may come, and otherwise why
	// they never will. It is nil where reads wait.
	ready func(n int) error
	typ   frameType
	left  int // of the body of the frame
}

// peekLen is the longest run of bytes that take returns.
const peekLen = 64 << 10

// directLen is how long a part of a payload is that is not read by way of the buffer, at least.
const directLen = 4 << 10

func newFrameReader(r io.Reader) *frameReader {
	in := &frameReader{from: r, ahead: peekLen}
	in.br = bufio.NewReaderSize((*readAhead)(in), peekLen)
	return in
}

// readAhead is what the buffer is filled from.
type readAhead frameReader

func (r *readAhead) Read(b []byte) (int, error) { return r.from.Read(b[:min(len(b), r.ahead)]) }

// next reads the header of the next frame. It returns io.EOF if the stream ended
// between two frames.
func (r *frameReader) next() error {
	if err := r.end(); err != nil {
		return err
	}
	b, err := r.br.Peek(frameHeaderLen)
	if err != nil {
		if len(b) > 0 && errors.Is(err, io.EOF) {
			return io.ErrUnexpectedEOF
		}
		return err
	}
	if string(b) == controlAnswer {
		return ErrControlSocket
	}
	length := order.Uint32(b)
	r.typ = frameType(b[4])
	switch {
	case b[5] != 0 || b[6] != 0 || b[7] != 0:
		return violation("bytes 5 to 7 of the header of %v are not zero", r.typ)
	case length > maxBody:
		return violation("%v of %d bytes: a frame has %d at most", r.typ, length, maxBody)
	}
	r.left = int(length)
	_, err = r.br.Discard(frameHeaderLen)
	return err
}

// fromRings has frames read from memory, where they are left until they have come as a whole, and fromSocket from a
// socket whose reads do not wait: there, they are buffered.
func (r *frameReader) fromRings(from rings) { r.ready, r.ahead = from.ready, directLen }

func (r *frameReader) fromSocket() {
	r.br = bufio.NewReaderSize(r.br, frameHeaderLen+maxBody)
	r.ready = func(n int) error {
		_, err := r.br.Peek(r.br.Buffered() + n)
		return err
	}
}

// whole returns nil if the next frame can be read without waiting, because it has come as a whole or breaks a rule, and
// otherwise errNothing, or why it will not come.
func (r *frameReader) whole() error {
	if r.ready == nil {
		return nil
	}
	if err := r.have(frameHeaderLen); err != nil {
		if r.br.Buffered() > 0 {
			err = cutOff(err)
		}
		return err
	}
	b, err := r.br.Peek(frameHeaderLen)
	if err != nil {
		return err
	}
	if length := order.Uint32(b); length <= maxBody {
		return cutOff(r.have(frameHeaderLen + int(length)))
	}
	return nil
}

// have returns nil if n bytes can be read without waiting.
func (r *frameReader) have(n int) error {
	if n -= r.br.Buffered(); n > 0 {
		return r.ready(n)
	}
	return nil
}

// end checks that all of the frame has been read.
func (r *frameReader) end() error {
	if r.left > 0 {
		return violation("%v has %d bytes too many", r.typ, r.left)
	}
	return nil
}

// take returns the next n bytes of the body, which are valid until the next
// call.
func (r *frameReader) take(n int) ([]byte, error) {
	if n > r.left {
		return nil, violation("%v is %d bytes too short", r.typ, n-r.left)
	}
	if n > peekLen {
		return nil, violation("%v has a field of %d bytes: the longest has %d", r.typ, n, peekLen)
	}
	b, err := r.br.Peek(n)
	if err != nil {
		return nil, cutOff(err)
	}
	r.left -= n
	_, err = r.br.Discard(n)
	return b, err
}

// read fills dst from the body.
func (r *frameReader) read(dst []byte) error {
	if len(dst) > r.left {
		return violation("%v is %d bytes too short", r.typ, len(dst)-r.left)
	}
	for len(dst) > 0 {
		from := r.from
		if r.br.Buffered() > 0 || len(dst) < directLen {
			from = r.br
		}
		n, err := from.Read(dst)
		r.left -= n
		if err != nil {
			return cutOff(err)
		}
		dst = dst[n:]
	}
	return nil
}

// skip throws the rest of the body away.
func (r *frameReader) skip() error {
	n, err := r.br.Discard(r.left)
	r.left -= n
	return cutOff(err)
}

// text returns the rest of the body, which is a text.
func (r *frameReader) text() (string, error) {
	if r.left > maxText {
		return "", violation("%v has a text of %d bytes: the longest has %d", r.typ, r.left, maxText)
	}
	b, err := r.take(r.left)
	return string(b), err
}

// cutOff is the error of a stream that ended in the middle of a frame.
func cutOff(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// clip shortens a text to what a frame may carry.
func clip(s string) string {
	const cut = " …"
	if len(s) > maxText {
		return s[:maxText-len(cut)] + cut
	}
	return s
}

// errBye: the program has sent BYE.
var errBye = errors.New("detached cleanly")

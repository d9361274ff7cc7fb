package tcp

import (
	"encoding/binary"

	"github.com/zrlmpi/zrlmpid/protocol"
)

const (
	// readLen is the length in bytes of the buffer that a connection's packets
	// are read into: the longest fits. readMost is what it grows to when one
	// read has filled it.
	readLen  = 64 << 10
	readMost = 256 << 10
)

// reader splits the stream of a connection into packets of the extended profile,
// where it lies.
type reader struct {
	buf []byte
	// buf[start:end] is what was read and not yet taken.
	start, end int
	// offset is the place in the stream of buf[start].
	offset int64
	header protocol.ExtHeader // of the packet that is examined
	// skip is how many of the bytes that follow are of a packet that is left out.
	// Nothing is read to where it belongs until they are gone: they could be taken for a header.
	skip int
}

// room returns where to read to. What was taken may be overwritten then.
func (r *reader) room() []byte {
	switch {
	case r.end == len(r.buf) && len(r.buf) < readMost: // the first time, or filled
		buf := make([]byte, max(readLen, min(readMost, len(r.buf)*readMost/readLen)))
		r.end = copy(buf, r.buf[r.start:r.end])
		r.buf, r.start = buf, 0
	case r.start == r.end:
		r.start, r.end = 0, 0
	case len(r.buf)-r.end < len(r.buf)/2:
		r.end = copy(r.buf, r.buf[r.start:r.end])
		r.start = 0
	}
	return r.buf[r.end:]
}

// filled says that so many bytes more were read.
func (r *reader) filled(n int) { r.end += n }

// next takes a packet, which is good for protocol.ParseExtended and valid until
// room is called. It returns nil if there is none, or only a part of one. The error
// is a *protocol.FrameError; it is final.
func (r *reader) next() ([]byte, error) {
	if r.skip > 0 {
		skipped := min(r.skip, r.end-r.start)
		r.skip -= skipped
		r.start += skipped
		r.offset += int64(skipped)
	}
	have := r.buf[r.start:r.end]
	if len(have) < protocol.ExtHeaderLen {
		return nil, nil
	}
	payload := binary.LittleEndian.Uint32(have[offPayload:])
	length := protocol.ExtHeaderLen + int(payload)
	if payload <= protocol.MaxStreamPayload && length <= len(have) {
		packet := have[:length:length]
		if _, ok := r.header.Parse(packet); !ok {
			_, _, d := protocol.ParseExtended(packet)
			return nil, &protocol.FrameError{Offset: r.offset, Err: d.Err()}
		}
		r.start += length
		r.offset += int64(length)
		return packet, nil
	}
	// A part of one, if it is one at all.
	if _, _, d := protocol.ParseExtendedHeader(have[:protocol.ExtHeaderLen]); !d.OK() {
		return nil, &protocol.FrameError{Offset: r.offset, Err: d.Err()}
	}
	if payload > protocol.MaxStreamPayload {
		return nil, &protocol.FrameError{Offset: r.offset, Err: &protocol.StreamPayloadError{Bytes: payload}}
	}
	return nil, nil
}

// hasHeader reports whether next has to be called once more before it is known that
// nothing is to be had.
func (r *reader) hasHeader() bool { return r.end-r.start >= protocol.ExtHeaderLen }

// unread is how many bytes were read and not taken, and first the first of them.
func (r *reader) unread() int { return r.end - r.start }
func (r *reader) first() byte { return r.buf[r.start] }

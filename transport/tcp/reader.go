package tcp

import (
	"encoding/binary"

	"github.com/zrlmpi/zrlmpid/protocol"
)

const (
	// readLen is the initial length in bytes of a connection's receive buffer, in which the longest packet
	// fits. If one read fills the buffer, it grows to maxReadLen bytes.
	readLen    = 64 << 10
	maxReadLen = 256 << 10
)

// reader splits the stream of a connection into packets of the extended profile, without copying them.
type reader struct {
	buf []byte
	// buf[start:end] is data that has been read but not yet consumed.
	start, end int
	// offset is the position of buf[start] in the stream.
	offset int64
	header protocol.ExtHeader // of the packet being examined
	// skip is the number of following bytes that belong to a skipped packet. Until the reader has consumed them,
	// nothing is placed directly, because they could be mistaken for a header.
	skip int
}

// readBuffer returns the buffer for the next read. Packets returned earlier may be overwritten from then on.
func (r *reader) readBuffer() []byte {
	switch {
	case r.end == len(r.buf) && len(r.buf) < maxReadLen: // first use, or full
		buf := make([]byte, max(readLen, min(maxReadLen, len(r.buf)*maxReadLen/readLen)))
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

// advance records that n more bytes were read.
func (r *reader) advance(n int) { r.end += n }

// next returns the next packet, which is valid for protocol.ParseExtended, or nil if no complete packet is available.
// The packet is valid until the next call of readBuffer. The error is a *protocol.FrameError; the stream is unusable
// after it.
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
	// Only a part of the packet is available. Check its header already.
	if _, _, d := protocol.ParseExtendedHeader(have[:protocol.ExtHeaderLen]); !d.OK() {
		return nil, &protocol.FrameError{Offset: r.offset, Err: d.Err()}
	}
	if payload > protocol.MaxStreamPayload {
		return nil, &protocol.FrameError{Offset: r.offset, Err: &protocol.StreamPayloadError{Bytes: payload}}
	}
	return nil, nil
}

// hasHeader reports whether a complete header is available, so that next may return a packet or an error.
func (r *reader) hasHeader() bool { return r.end-r.start >= protocol.ExtHeaderLen }

// unreadBytes returns the number of bytes in the buffer not yet consumed. head returns these bytes.
func (r *reader) unreadBytes() int { return r.end - r.start }
func (r *reader) head() []byte     { return r.buf[r.start:r.end] }

package capture

import (
	"bytes"

	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// stream parses one direction of a TCP connection: headers, and payload after the headers of DATA.
type stream struct {
	header [protocol.HeaderLen]byte
	have   int   // bytes of the header
	left   int64 // payload bytes still to come
	lost   bool  // packet boundaries are unknown
	// packet is an incomplete packet of the extended profile, or nil. cut is the number of its bytes that were not
	// recorded.
	packet []byte
	cut    int
}

// streamed processes a piece of a TCP stream.
func (t *Tracker) streamed(c *conversation, forward bool, u *pcapng.Unit) {
	side := 0
	if !forward {
		side = 1
	}
	if c.tcp[side] == nil || u.Restart {
		c.tcp[side] = &stream{}
	}
	s := c.tcp[side]
	out, in := sides(&c.flows, forward)
	b := u.Data
	missing := int64(u.Gap)
	if missing > 0 {
		if s.left < missing || s.have > 0 || s.packet != nil {
			s.lost, s.have, s.left, s.packet, s.cut = true, 0, 0, nil, 0
		} else {
			s.left -= missing
		}
	}
	for len(b) > 0 {
		switch {
		case s.lost:
			b = t.resync(u, s, b)
		case s.packet != nil:
			b = t.streamExtended(c, forward, u, s, b)
		case s.left > 0:
			n := min(int64(len(b)), s.left)
			e := t.begin(u, b[:n])
			out.payload(e, b[:n], 0)
			t.emit(e)
			s.left -= n
			b = b[n:]
		default:
			n := copy(s.header[s.have:], b)
			s.have += n
			b = b[n:]
			if s.have == protocol.HeaderLen {
				s.have = 0
				if protocol.IsExtended(s.header[:]) {
					s.packet = bytes.Clone(s.header[:])
					break
				}
				t.streamHeader(u, s, out, in)
			}
		}
	}
	if u.Truncated > 0 {
		t.streamTruncated(c, forward, u, s)
	}
}

// streamHeader processes a complete header.
func (t *Tracker) streamHeader(u *pcapng.Unit, s *stream, out, in *flow) {
	e := t.begin(u, s.header[:])
	defer t.emit(e)
	h, defect := t.opts.Profile.Parse(s.header[:])
	e.Header = h
	if !defect.OK() {
		e.Kind, e.Reason, e.Byte = BadEvent, handshake.Reason(defect.Kind), defect.Offset
		t.find(BadHeader, e, "the stream from %v to %v lost its framing: %v", u.Src, u.Dst, defect.Err())
		s.lost = true
		return
	}
	e.Kind, e.HasRanks = PacketEvent, true
	t.identify(e, out, in)
	t.header(e, out, in, nil, 0)
	if h.Type == protocol.Data {
		s.left = int64(h.Size) * protocol.WordLen
	}
}

// resync searches for the next header after a hole in the stream.
func (t *Tracker) resync(u *pcapng.Unit, s *stream, b []byte) []byte {
	mark := []byte{protocol.Mark, protocol.Mark, protocol.Mark, protocol.Mark}
	for at := 0; ; at++ {
		i := bytes.Index(b[at:], mark)
		if i < 0 {
			break
		}
		at += i
		_, defect := t.opts.Profile.Parse(b[at:])
		if _, _, extended := protocol.ParseExtendedHeader(b[at:]); defect.OK() || extended.OK() {
			s.lost = false
			return b[at:]
		}
	}
	e := t.begin(u, b)
	e.Kind, e.Reason = BadEvent, handshake.ReasonStream
	t.emit(e)
	return nil
}

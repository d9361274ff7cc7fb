package capture

import (
	"bytes"

	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// stream parses one direction of a AddTCP connection: headers, and payload after the headers of DATA.
type streamParser struct {
	header      [protocol.HeaderLen]byte
	headerBytes int   // bytes of the header
	payloadLeft int64 // payload bytes still to come
	isLost      bool  // packet boundaries are unknown
	// extPacket is an incomplete packet of the extended profile, or nil. cut is the number of its bytes that were not
	// recorded.
	extPacket  []byte
	unrecorded int
}

// processStream processes a piece of a AddTCP stream.
func (t *Tracker) processStream(c *conversation, forward bool, u *pcapng.Unit) {
	side := 0
	if !forward {
		side = 1
	}
	if c.tcp[side] == nil || u.Restart {
		c.tcp[side] = &streamParser{}
	}
	s := c.tcp[side]
	out, in := orientFlows(&c.flows, forward)
	b := u.Data
	missing := int64(u.Gap)
	if missing > 0 {
		if s.payloadLeft < missing || s.headerBytes > 0 || s.extPacket != nil {
			s.isLost, s.headerBytes, s.payloadLeft, s.extPacket, s.unrecorded = true, 0, 0, nil, 0
		} else {
			s.payloadLeft -= missing
		}
	}
	for len(b) > 0 {
		switch {
		case s.isLost:
			b = t.resync(u, s, b)
		case s.extPacket != nil:
			b = t.processExtStream(c, forward, u, s, b)
		case s.payloadLeft > 0:
			n := min(int64(len(b)), s.payloadLeft)
			e := t.newEvent(u, b[:n])
			out.onPayload(e, b[:n], 0)
			t.emit(e)
			s.payloadLeft -= n
			b = b[n:]
		default:
			n := copy(s.header[s.headerBytes:], b)
			s.headerBytes += n
			b = b[n:]
			if s.headerBytes == protocol.HeaderLen {
				s.headerBytes = 0
				if protocol.IsExtended(s.header[:]) {
					s.extPacket = bytes.Clone(s.header[:])
					break
				}
				t.processTCPHeader(u, s, out, in)
			}
		}
	}
	if u.Truncated > 0 {
		t.skipUnrecorded(c, forward, u, s)
	}
}

// processTCPHeader processes a complete header.
func (t *Tracker) processTCPHeader(u *pcapng.Unit, s *streamParser, out, in *flow) {
	e := t.newEvent(u, s.header[:])
	defer t.emit(e)
	h, defect := t.opts.Profile.Parse(s.header[:])
	e.Header = h
	if !defect.OK() {
		e.Kind, e.Reason, e.BadByte = BadEvent, handshake.Reason(defect.Kind), defect.Offset
		t.addFinding(BadHeader, e, "the stream from %v to %v lost its framing: %v", u.Src, u.Dst, defect.Err())
		s.isLost = true
		return
	}
	e.Kind, e.HasRanks = PacketEvent, true
	t.checkRanks(e, out, in)
	t.processHeader(e, out, in, nil, 0)
	if h.Type == protocol.Data {
		s.payloadLeft = int64(h.Size) * protocol.WordLen
	}
}

// resync searches for the next header after a hole in the stream.
func (t *Tracker) resync(u *pcapng.Unit, s *streamParser, b []byte) []byte {
	mark := []byte{protocol.Mark, protocol.Mark, protocol.Mark, protocol.Mark}
	for at := 0; ; at++ {
		i := bytes.Index(b[at:], mark)
		if i < 0 {
			break
		}
		at += i
		_, defect := t.opts.Profile.Parse(b[at:])
		if _, _, extended := protocol.ParseExtendedHeader(b[at:]); defect.OK() || extended.OK() {
			s.isLost = false
			return b[at:]
		}
	}
	e := t.newEvent(u, b)
	e.Kind, e.Reason = BadEvent, handshake.ReasonStream
	t.emit(e)
	return nil
}

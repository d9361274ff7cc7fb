package capture

import (
	"bytes"

	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// streamParser parses one direction of a TCP connection, which consists of headers, payload after DATA headers, and
// packets of the extended profile.
type streamParser struct {
	header      [protocol.HeaderLen]byte
	headerBytes int   // bytes of the header
	payloadLeft int64 // payload bytes still to come
	isLost      bool  // packet boundaries are unknown
	// extPacket holds the bytes received so far of an incomplete packet of the extended profile. It is nil if there is
	// none. unrecorded is the number of bytes of this packet that were not recorded.
	extPacket  []byte
	unrecorded int
}

// processStream processes a piece of a TCP stream.
func (t *Tracker) processStream(c *conversation, forward bool, unit *pcapng.Unit) {
	side := 0
	if !forward {
		side = 1
	}
	if c.tcp[side] == nil || unit.Restart {
		c.tcp[side] = &streamParser{}
	}
	parser := c.tcp[side]
	out, in := orientFlows(&c.flows, forward)
	b := unit.Data
	missing := int64(unit.Gap)
	if missing > 0 {
		if parser.payloadLeft < missing || parser.headerBytes > 0 || parser.extPacket != nil {
			parser.isLost, parser.headerBytes, parser.payloadLeft, parser.extPacket, parser.unrecorded = true, 0, 0, nil, 0
		} else {
			parser.payloadLeft -= missing
		}
	}
	for len(b) > 0 {
		switch {
		case parser.isLost:
			b = t.resync(unit, parser, b)
		case parser.extPacket != nil:
			b = t.processExtStream(c, forward, unit, parser, b)
		case parser.payloadLeft > 0:
			n := min(int64(len(b)), parser.payloadLeft)
			e := t.newEvent(unit, b[:n])
			out.onPayload(e, b[:n], 0)
			t.emit(e)
			parser.payloadLeft -= n
			b = b[n:]
		default:
			n := copy(parser.header[parser.headerBytes:], b)
			parser.headerBytes += n
			b = b[n:]
			if parser.headerBytes == protocol.HeaderLen {
				parser.headerBytes = 0
				if protocol.IsExtended(parser.header[:]) {
					parser.extPacket = bytes.Clone(parser.header[:])
					break
				}
				t.processTCPHeader(unit, parser, out, in)
			}
		}
	}
	if unit.Truncated > 0 {
		t.skipUnrecorded(c, forward, unit, parser)
	}
}

// processTCPHeader processes a complete header.
func (t *Tracker) processTCPHeader(unit *pcapng.Unit, parser *streamParser, out, in *flow) {
	event := t.newEvent(unit, parser.header[:])
	defer t.emit(event)
	header, defect := t.opts.Profile.Parse(parser.header[:])
	event.Header = header
	if !defect.OK() {
		event.Kind, event.Reason, event.BadByte = BadEvent, handshake.Reason(defect.Kind), defect.Offset
		t.addFinding(BadHeader, event, "the stream from %v to %v lost its framing: %v", unit.Src, unit.Dst, defect.Err())
		parser.isLost = true
		return
	}
	event.Kind, event.HasRanks = PacketEvent, true
	t.checkRanks(event, out, in)
	t.processHeader(event, out, in, nil, 0)
	if header.Type == protocol.Data {
		parser.payloadLeft = int64(header.Size) * protocol.WordLen
	}
}

// resync finds the next header in a stream after a hole.
func (t *Tracker) resync(unit *pcapng.Unit, parser *streamParser, b []byte) []byte {
	mark := []byte{protocol.Mark, protocol.Mark, protocol.Mark, protocol.Mark}
	for at := 0; ; at++ {
		i := bytes.Index(b[at:], mark)
		if i < 0 {
			break
		}
		at += i
		_, defect := t.opts.Profile.Parse(b[at:])
		if _, _, extended := protocol.ParseExtendedHeader(b[at:]); defect.OK() || extended.OK() {
			parser.isLost = false
			return b[at:]
		}
	}
	e := t.newEvent(unit, b)
	e.Kind, e.Reason = BadEvent, handshake.ReasonStream
	t.emit(e)
	return nil
}

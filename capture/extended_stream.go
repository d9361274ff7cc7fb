package capture

import (
	"github.com/zrlmpi/zrlmpid/protocol"

	"github.com/zrlmpi/zrlmpid/capture/pcapng"
)

// processExtStream adds bytes of a stream to the current packet of the extended profile, processes the packet when it
// is complete, and returns the remaining bytes. It buffers the whole packet, because only the checksum proves that the
// bytes are a packet. protocol.MaxStreamPayload limits the buffer.
func (t *Tracker) processExtStream(c *conversation, forward bool, unit *pcapng.Unit, parser *streamParser,
	b []byte) []byte {
	b = parser.fillPacket(b, protocol.ExtHeaderLen)
	if len(parser.extPacket) < protocol.ExtHeaderLen {
		return b
	}
	_, payload, d := protocol.ParseExtendedHeader(parser.extPacket)
	if d.OK() && payload > protocol.MaxStreamPayload {
		d = protocol.Defect{Kind: protocol.DefectLength, Offset: 20, Got32: payload, Want32: protocol.MaxStreamPayload}
	}
	if d.OK() {
		whole := protocol.ExtHeaderLen + int(payload) - parser.unrecorded
		if b = parser.fillPacket(b, whole); len(parser.extPacket) < whole {
			return b
		}
	}
	// After a bad packet, the boundaries of packets in the stream are unknown.
	parser.isLost = !t.processExtPacket(c, forward, unit, parser.extPacket, parser.unrecorded).OK()
	parser.extPacket, parser.unrecorded = nil, 0
	return b
}

// fillPacket moves bytes from b to extPacket until extPacket contains n bytes, and returns the rest of b.
func (s *streamParser) fillPacket(b []byte, n int) []byte {
	n = min(max(n-len(s.extPacket), 0), len(b))
	s.extPacket = append(s.extPacket, b[:n]...)
	return b[n:]
}

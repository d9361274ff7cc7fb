package capture

import (
	"github.com/zrlmpi/zrlmpid/protocol"

	"github.com/zrlmpi/zrlmpid/capture/pcapng"
)

// skipUnrecorded skips the bytes of a unit that were on the wire but not recorded. If they are all payload of one
// message, the parser still knows the position of the next header.
func (t *Tracker) skipUnrecorded(c *conversation, forward bool, unit *pcapng.Unit, parser *streamParser) {
	n := unit.Truncated
	switch {
	case parser.isLost:
	case parser.extPacket != nil && len(parser.extPacket) >= protocol.ExtHeaderLen:
		_, payload, _ := protocol.ParseExtendedHeader(parser.extPacket)
		left := protocol.ExtHeaderLen + int(payload) - len(parser.extPacket) - parser.unrecorded
		if parser.unrecorded += n; n < left {
			return
		}
		part := *unit
		part.Truncated = parser.unrecorded
		parser.isLost = n > left || !t.processExtPacket(c, forward, &part, parser.extPacket, parser.unrecorded).OK()
		parser.extPacket, parser.unrecorded = nil, 0
		return
	case parser.extPacket == nil && parser.headerBytes == 0 && parser.payloadLeft >= int64(n):
		out, _ := orientFlows(&c.flows, forward)
		part := *unit
		e := t.newEvent(&part, nil)
		out.onPayload(e, nil, n)
		t.emit(e)
		parser.payloadLeft -= int64(n)
		return
	}
	parser.isLost, parser.extPacket, parser.unrecorded, parser.headerBytes, parser.payloadLeft = true, nil, 0, 0, 0
}

package capture

import (
	"github.com/zrlmpi/zrlmpid/protocol"

	"github.com/zrlmpi/zrlmpid/capture/pcapng"
)

// skipUnrecorded processes bytes of a stream that were on the wire but not recorded. If they are payload of known
// length, the position of the next header remains known.
func (t *Tracker) skipUnrecorded(c *conversation, forward bool, u *pcapng.Unit, s *streamParser) {
	n := u.Truncated
	switch {
	case s.isLost:
	case s.extPacket != nil && len(s.extPacket) >= protocol.ExtHeaderLen:
		_, payload, _ := protocol.ParseExtendedHeader(s.extPacket)
		left := protocol.ExtHeaderLen + int(payload) - len(s.extPacket) - s.unrecorded
		if s.unrecorded += n; n < left {
			return
		}
		part := *u
		part.Truncated = s.unrecorded
		s.isLost = n > left || !t.processExtPacket(c, forward, &part, s.extPacket, s.unrecorded).OK()
		s.extPacket, s.unrecorded = nil, 0
		return
	case s.extPacket == nil && s.headerBytes == 0 && s.payloadLeft >= int64(n):
		out, _ := orientFlows(&c.flows, forward)
		part := *u
		e := t.newEvent(&part, nil)
		out.onPayload(e, nil, n)
		t.emit(e)
		s.payloadLeft -= int64(n)
		return
	}
	s.isLost, s.extPacket, s.unrecorded, s.headerBytes, s.payloadLeft = true, nil, 0, 0, 0
}

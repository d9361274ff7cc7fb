package capture

import (
	"github.com/zrlmpi/zrlmpid/protocol"

	"github.com/zrlmpi/zrlmpid/capture/pcapng"
)

// streamTruncated processes bytes of a stream that were on the wire but not recorded. If they are payload of known
// length, the position of the next header remains known.
func (t *Tracker) streamTruncated(c *conversation, forward bool, u *pcapng.Unit, s *stream) {
	n := u.Truncated
	switch {
	case s.lost:
	case s.packet != nil && len(s.packet) >= protocol.ExtHeaderLen:
		_, payload, _ := protocol.ParseExtendedHeader(s.packet)
		left := protocol.ExtHeaderLen + int(payload) - len(s.packet) - s.cut
		if s.cut += n; n < left {
			return
		}
		part := *u
		part.Truncated = s.cut
		s.lost = n > left || !t.extendedPacket(c, forward, &part, s.packet, s.cut).OK()
		s.packet, s.cut = nil, 0
		return
	case s.packet == nil && s.have == 0 && s.left >= int64(n):
		out, _ := sides(&c.flows, forward)
		part := *u
		e := t.begin(&part, nil)
		out.payload(e, nil, n)
		t.emit(e)
		s.left -= int64(n)
		return
	}
	s.lost, s.packet, s.cut, s.have, s.left = true, nil, 0, 0, 0
}

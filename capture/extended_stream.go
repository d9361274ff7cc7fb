package capture

import (
	"github.com/zrlmpi/zrlmpid/protocol"

	"github.com/zrlmpi/zrlmpid/capture/pcapng"
)

// streamExtended takes what a stream has next of a packet of the extended
// profile, follows the packet when it is whole, and returns what is behind it.
// A packet is held as a whole because only its checksum shows that it is one; its
// length is bounded by that of a packet on a stream.
func (t *Tracker) streamExtended(c *conversation, forward bool, u *pcapng.Unit, s *stream, b []byte) []byte {
	b = s.fill(b, protocol.ExtHeaderLen)
	if len(s.packet) < protocol.ExtHeaderLen {
		return b
	}
	_, payload, d := protocol.ParseExtendedHeader(s.packet)
	if d.OK() && payload > protocol.MaxStreamPayload {
		d = protocol.Defect{Kind: protocol.DefectLength, Offset: 20, Got32: payload, Want32: protocol.MaxStreamPayload}
	}
	if d.OK() {
		whole := protocol.ExtHeaderLen + int(payload) - s.cut
		if b = s.fill(b, whole); len(s.packet) < whole {
			return b
		}
	}
	// Behind a bad packet the stream has lost its framing.
	s.lost = !t.extendedPacket(c, forward, u, s.packet, s.cut).OK()
	s.packet, s.cut = nil, 0
	return b
}

// fill moves bytes from b until the packet has n of them.
func (s *stream) fill(b []byte, n int) []byte {
	n = min(max(n-len(s.packet), 0), len(b))
	s.packet = append(s.packet, b[:n]...)
	return b[n:]
}

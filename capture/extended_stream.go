package capture

import (
	"github.com/zrlmpi/zrlmpid/protocol"

	"github.com/zrlmpi/zrlmpid/capture/pcapng"
)

// streamExtended adds bytes of a stream to the current packet of the extended profile, processes the packet when it is
// complete, and returns the remaining bytes. The whole packet is buffered because only its checksum proves that the
// bytes are a packet. The maximum payload on a stream limits its length.
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
	// After a bad packet, the boundaries of packets in the stream are unknown.
	s.lost = !t.extendedPacket(c, forward, u, s.packet, s.cut).OK()
	s.packet, s.cut = nil, 0
	return b
}

// fill moves bytes from b to the packet until the packet has n bytes.
func (s *stream) fill(b []byte, n int) []byte {
	n = min(max(n-len(s.packet), 0), len(b))
	s.packet = append(s.packet, b[:n]...)
	return b[n:]
}

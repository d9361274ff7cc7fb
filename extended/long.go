package extended

import "github.com/zrlmpi/zrlmpid/protocol"

// LongPackets sets the maximum payload of cleared DATA, in bytes, for packets whose payload is not carried by the
// network: the peer fetches it from our memory (E47). Such payload does not count as in flight. 0, the initial value,
// disables this for new packets, which then follow Config.
func (c *Conn) LongPackets(payload int) {
	c.path.long = int32(max(payload, 0))
	c.changed = true
}

// Expects returns the destination of the payload of a packet of which all but the n bytes of payload were received:
// message m, at offset. ok is true only if Packet would copy the whole payload there, given a valid checksum, and m was
// cleared. Expects changes no state.
func (c *Conn) Expects(header []byte, n int) (m Message, offset int64, ok bool) {
	h, payload, defect := protocol.ParseExtendedHeader(header)
	s := &c.session
	if !defect.OK() || int(payload) != n || h.Src != c.cfg.Remote || h.Dst != c.cfg.Local ||
		h.Session != s.remote || h.PeerSession != s.local || h.Session == 0 ||
		int32(h.Acknowledged-c.path.unused()) > 0 ||
		h.Type != protocol.Data || h.Flags&protocol.FlagEager != 0 || !h.Call.IsSend() || n == 0 ||
		c.arrivals.check(h.Number) != ReasonNone {
		return 0, 0, false
	}
	in := c.recvs.find(h.Message)
	if in == nil || !in.accepted || in.misfit(&h, n) != ReasonNone {
		return 0, 0, false
	}
	return c.recvs.message(in.number), int64(h.Offset), true
}

// PacketAdvertised is Packet for a packet whose message can be fetched as a whole before it is cleared (E48). The
// resulting Open has Advertised set. If the packet is held for predecessors of its message, this is forgotten, and the
// message has to be cleared.
func (c *Conn) PacketAdvertised(now Instant, packet []byte, acts []Action) []Action {
	c.recvs.offered = true
	acts = c.Packet(now, packet, acts)
	c.recvs.offered = false
	return acts
}

// Fetched is Accept for an advertised message of which the caller has fetched all that fits into room bytes. The sender
// is informed that no more is needed, and Arrived follows at once.
func (c *Conn) Fetched(_ Instant, message Message, room int64, acts []Action) []Action {
	return c.recvs.accept(message, room, true, acts)
}

// misfit returns the reason to drop a DATA packet with n bytes of payload of a message that has begun, or ReasonNone.
func (m *inbound) misfit(h *protocol.ExtHeader, n int) Reason {
	eager := h.Flags&protocol.FlagEager != 0
	if m.eager != eager || m.comm != h.Comm || m.tag != h.Tag || m.datatype != h.Call.Datatype() ||
		m.length != int64(h.Length) ||
		int64(h.Offset)+int64(n) > m.take || m.got+int64(n) > m.take {
		return ReasonMismatch
	}
	return ReasonNone
}

package extended

import "github.com/zrlmpi/zrlmpid/protocol"

// LongPackets has DATA that was asked for go in packets of up to so many bytes of
// payload, which the network does not carry: the peer fetches it from our memory
// (E47). It does not count among the bytes in flight. 0, as at first, ends that: what is sent
// from then on is as Config says.
func (c *Conn) LongPackets(payload int) {
	c.path.long = int32(max(payload, 0))
	c.changed = true
}

// Expects says where the payload of a packet belongs that has arrived but for its
// payload of n bytes: to the message m, from byte offset on. It reports false unless
// Packet would have it copied there, all of it, if the checksum is right, and m was
// asked for. Nothing is changed by that.
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

// Advertised is Packet for one whose sender lets its message be fetched whole before it is
// cleared (E48). The Open that it leads to says so. If it is held for its predecessors, that is
// forgotten: its message will have to be cleared.
func (c *Conn) PacketAdvertised(now Instant, packet []byte, acts []Action) []Action {
	c.recvs.offered = true
	acts = c.Packet(now, packet, acts)
	c.recvs.offered = false
	return acts
}

// Fetched is Accept for a message that was advertised, of which the caller has fetched all
// that there is room for. Its sender learns that no more is needed, and Arrived follows
// at once.
func (c *Conn) Fetched(_ Instant, message Message, room int64, acts []Action) []Action {
	return c.recvs.accept(message, room, true, acts)
}

// misfit says what is wrong with a packet of DATA, with n bytes of payload, of a
// message that has begun.
func (m *inbound) misfit(h *protocol.ExtHeader, n int) Reason {
	eager := h.Flags&protocol.FlagEager != 0
	if m.eager != eager || m.comm != h.Comm || m.tag != h.Tag || m.datatype != h.Call.Datatype() || m.length != int64(h.Length) ||
		int64(h.Offset)+int64(n) > m.take || m.got+int64(n) > m.take {
		return ReasonMismatch
	}
	return ReasonNone
}

package extended

import "github.com/zrlmpi/zrlmpid/protocol"

// SetFetchPayload makes the peer fetch the payload of cleared DATA packets from our memory, so that the network does
// not carry it (E47). payload is the maximum payload of such a packet, in bytes; fetched payload does not count as in
// flight. If payload is 0, the initial value, the network carries the payload of new packets.
func (c *Conn) SetFetchPayload(payload int) {
	c.path.fetchPayload = int32(max(payload, 0))
	c.changed = true
}

// PayloadTarget returns the message m and the offset in it to which Packet would copy the payload of a packet, before
// that payload is received. header is the header of the packet, and n the number of payload bytes. ok is true only if m
// was cleared and Packet would copy the whole payload, provided that the checksum is valid. PayloadTarget changes no
// state.
func (c *Conn) PayloadTarget(header []byte, n int) (m Message, offset int64, ok bool) {
	hdr, payload, defect := protocol.ParseExtendedHeader(header)
	s := &c.session
	if !defect.OK() || int(payload) != n || hdr.Src != c.cfg.Remote || hdr.Dst != c.cfg.Local ||
		hdr.Session != s.remote || hdr.PeerSession != s.local || hdr.Session == 0 ||
		int32(hdr.Acknowledged-c.path.nextNumber()) > 0 ||
		hdr.Type != protocol.Data || hdr.Flags&protocol.FlagEager != 0 || !hdr.Call.IsSend() || n == 0 ||
		c.arrivals.dropReason(hdr.Number) != ReasonNone {
		return 0, 0, false
	}
	in := c.recvs.find(hdr.Message)
	if in == nil || !in.accepted || in.validateData(&hdr, n) != ReasonNone {
		return 0, 0, false
	}
	return c.recvs.messageID(in.number), int64(hdr.Offset), true
}

// PacketAdvertised is like Packet, for a packet that announces a message whose payload can be fetched before the
// message is cleared (E48). The resulting Open has Advertised set, unless the packet has to be held until earlier
// messages have begun.
func (c *Conn) PacketAdvertised(now Instant, packet []byte, acts []Action) []Action {
	c.recvs.offered = true
	acts = c.Packet(now, packet, acts)
	c.recvs.offered = false
	return acts
}

// AcceptFetched replaces Accept for an advertised message whose payload the caller has already fetched, up to the given
// capacity of the receive in bytes. The Conn informs the sender that no more is needed, and reports Arrived at once.
func (c *Conn) AcceptFetched(_ Instant, message Message, room int64, acts []Action) []Action {
	return c.recvs.accept(message, room, true, acts)
}

// validateData returns ReasonNone if a DATA packet with n bytes of payload is consistent with m, and otherwise the
// reason to drop it.
func (m *inbound) validateData(h *protocol.ExtHeader, n int) Reason {
	eager := h.Flags&protocol.FlagEager != 0
	if m.eager != eager || m.comm != h.Comm || m.tag != h.Tag || m.datatype != h.Call.Datatype() ||
		m.length != int64(h.Length) ||
		int64(h.Offset)+int64(n) > m.expectedBytes || m.receivedBytes+int64(n) > m.expectedBytes {
		return ReasonMismatch
	}
	return ReasonNone
}

package capture

import (
	"fmt"
	"strings"

	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Extended holds the Event fields specific to the extended profile. Like the Event, it is valid only during the
// callback.
type Extended struct {
	// Header is the decoded header. It is valid even if the packet is corrupt, unless its marks or version are wrong.
	Header protocol.ExtHeader
	// Payload is the number of bytes that follow the header.
	Payload int
	// Ack is the decoded payload of an ACK packet. HasAck is true if Ack is valid.
	Ack    protocol.AckInfo
	HasAck bool
	// Defect is the reason for which a rank drops a packet reported as BadEvent. ChecksumVerified is false if the
	// checksum cannot be verified because the recording contains only part of the packet.
	Defect           protocol.Defect
	ChecksumVerified bool
	// OutOfOrder is true for a packet recorded after one with a higher number, except for a retransmission.
	OutOfOrder bool
	// NewSession is true for the first packet of a session.
	NewSession bool
	// OldSession is true for a packet that belongs to an earlier session.
	OldSession bool

	ranges [protocol.MaxAckRanges]protocol.Range
}

// isExtended reports whether a datagram is a packet of the extended profile. Payload of another profile may resemble
// such a packet by chance, so where that payload is expected, the checksum must be correct as well.
func (t *Tracker) isExtended(c *conversation, forward bool, unit *pcapng.Unit) bool {
	if !protocol.IsExtended(unit.Data) {
		return false
	}
	out, _ := orientFlows(&c.flows, forward)
	if out.expectsPayload(unit, protocol.Header{}, protocol.Defect{Kind: protocol.DefectReserved}) {
		_, _, d := protocol.ParseExtended(unit.Data)
		return d.OK()
	}
	return true
}

// processExtended processes a datagram of the extended profile. With segmentation offload, a recording made on the
// sender's host shows several packets as one datagram, which processExtended splits by their length fields.
func (t *Tracker) processExtended(c *conversation, forward bool, unit *pcapng.Unit) {
	for b := unit.Data; len(b) > 0; {
		n, truncated := len(b), unit.Truncated
		_, payload, defect := protocol.ParseExtendedHeader(b)
		whole := protocol.ExtHeaderLen + int64(payload)
		switch {
		case !defect.OK():
		case whole < int64(n) && protocol.IsExtended(b[whole:]):
			n, truncated = int(whole), 0
		case whole > int64(n) && whole < int64(n+truncated):
			truncated = int(whole) - n
		}
		t.processExtPacket(c, forward, unit, b[:n], truncated)
		if b = b[n:]; len(b) == 0 && defect.OK() && truncated < unit.Truncated {
			// The packets that follow were not recorded.
			out, in := orientFlows(c.ext, forward)
			out.counts.Unrecorded += int64(unit.Truncated - truncated)
			out.hasGaps, in.hasGaps = true, true
		}
	}
}

// processExtPacket processes one packet. b is its recorded part, and truncated is the number of bytes after b that were
// not recorded.
func (t *Tracker) processExtPacket(c *conversation, forward bool, u *pcapng.Unit, b []byte,
	truncated int) protocol.Defect {
	event := t.newEvent(u, b)
	defer t.emit(event)
	extended := t.decodeExtended(b, truncated)
	event.Extended, event.Kind = extended, PacketEvent
	event.Header = extended.Header.Frame()
	if c.ext == nil {
		c.ext = &[2]extFlow{
			{tracker: t, from: c.key.a, to: c.key.b, openMessages: map[uint32]*extMessage{}, plainBack: &c.flows[1]},
			{tracker: t, from: c.key.b, to: c.key.a, openMessages: map[uint32]*extMessage{}, plainBack: &c.flows[0]},
		}
		c.ext[0].back, c.ext[1].back = &c.ext[1], &c.ext[0]
	}
	out, in := orientFlows(c.ext, forward)
	if !extended.ChecksumVerified && extended.Defect.Kind == protocol.DefectShort &&
		len(b)+truncated >= protocol.ExtHeaderLen {
		event.Kind = BadEvent
		t.cutShortPackets++
		return extended.Defect
	}
	if !extended.Defect.OK() {
		event.Kind, event.BadByte = BadEvent, extended.Defect.Offset
		event.HasRanks = extended.Header.Type != 0
		out.onCorrupt(event)
		return extended.Defect
	}
	event.HasRanks = true
	from, to := orientFlows(&c.flows, forward)
	t.checkRanks(event, from, to)
	if header := &extended.Header; header.Type == protocol.Data {
		if int64(header.Offset)+int64(extended.Payload) > int64(header.Length) {
			t.addFinding(SizeMismatch, event, "%s: the payload does not lie in its message", header.Describe(extended.Payload))
			out.counts.Bad++
			return protocol.Defect{}
		}
		event.IsData, event.Offset, event.Bytes, event.Total, event.DataPacket = true, int64(header.Offset),
			int64(extended.Payload), int64(header.Length),
			event.Packet
	}
	out.onPacket(event, in)
	return protocol.Defect{}
}

// decodeExtended decodes a packet into t.ext.
func (t *Tracker) decodeExtended(b []byte, truncated int) *Extended {
	extended := &t.ext
	*extended = Extended{Payload: max(len(b)+truncated-protocol.ExtHeaderLen, 0), ChecksumVerified: truncated == 0}
	header, said, defect := protocol.ParseExtendedHeader(b)
	extended.Header, extended.Defect = header, defect
	var payload []byte
	switch {
	case extended.ChecksumVerified:
		_, payload, extended.Defect = protocol.ParseExtended(b)
	case defect.OK() && int64(said) != int64(extended.Payload):
		extended.Defect = protocol.Defect{Kind: protocol.DefectLength, Offset: 20, Got32: said,
			Want32: uint32(extended.Payload)}
	}
	if _, report := header.Report(); extended.Defect.OK() && header.Type == protocol.Ack && !report {
		extended.Ack, extended.HasAck = protocol.ParseAck(payload, extended.ranges[:0])
	}
	return extended
}

// text formats the packet for zrlctl decode.
func (x *Extended) text() string {
	var s strings.Builder
	s.WriteString(x.Header.Describe(x.Payload))
	if x.HasAck {
		s.WriteByte(' ')
		s.WriteString(x.Ack.String())
	}
	if x.NewSession || x.OldSession || x.Header.Flags&protocol.FlagHello != 0 {
		fmt.Fprintf(&s, " session=%v to %v", x.Header.Session, x.Header.PeerSession)
	}
	for _, note := range []struct {
		applies bool
		text    string
	}{
		{x.NewSession, "new session"}, {x.OldSession, "of an old session"}, {x.OutOfOrder, "out of order"},
		{!x.ChecksumVerified, "cut short by the recorder"},
	} {
		if note.applies {
			s.WriteString(", " + note.text)
		}
	}
	return s.String()
}

// JSONExtended is the JSON form of a packet of the extended profile, as printed by zrlctl decode. Each element of
// Ranges holds the first number of a range and the number after its last one.
type JSONExtended struct {
	Number       uint32           `json:"number,omitempty"`
	Acknowledged uint32           `json:"acknowledged"`
	Message      uint32           `json:"message,omitempty"`
	Communicator uint32           `json:"communicator"`
	Tag          uint32           `json:"tag"`
	Code         string           `json:"code,omitempty"`
	Length       uint32           `json:"length"`
	Offset       uint32           `json:"offset"`
	Payload      int              `json:"payload"`
	Flags        []string         `json:"flags,omitempty"`
	Session      protocol.Session `json:"session"`
	PeerSession  protocol.Session `json:"peer_session"`
	// MessageLimit to Ranges are fields of ACK.
	MessageLimit *uint32     `json:"message_limit,omitempty"`
	EagerLimit   *uint32     `json:"eager_limit,omitempty"`
	DelayMicros  *int64      `json:"delay_us,omitempty"`
	Ranges       [][2]uint32 `json:"ranges,omitempty"`
	NewSession   bool        `json:"new_session,omitempty"`
	OldSession   bool        `json:"old_session,omitempty"`
	OutOfOrder   bool        `json:"out_of_order,omitempty"`
	Unchecked    bool        `json:"unchecked,omitempty"`
}

// json returns the printed form. In an ERROR packet, the field of the tag carries the code, which is printed instead.
func (x *Extended) json() *JSONExtended {
	header := &x.Header
	extended := &JSONExtended{
		Number: header.Number, Acknowledged: header.Acknowledged, Message: header.Message, Communicator: header.Comm,
		Tag:    header.Tag,
		Length: header.Length, Offset: header.Offset, Payload: x.Payload, Flags: strings.Fields(header.Flags.String()),
		Session: header.Session, PeerSession: header.PeerSession,
		NewSession: x.NewSession, OldSession: x.OldSession, OutOfOrder: x.OutOfOrder, Unchecked: !x.ChecksumVerified,
	}
	if header.Type == protocol.Error {
		extended.Code, extended.Tag = header.Code().String(), 0
	}
	if x.HasAck {
		extended.MessageLimit, extended.EagerLimit, extended.DelayMicros = new(x.Ack.MessageLimit), new(x.Ack.EagerLimit),
			new(x.Ack.Delay.Microseconds())
		for _, r := range x.Ack.Ranges {
			extended.Ranges = append(extended.Ranges, [2]uint32{r.First, r.End})
		}
	}
	return extended
}

// dropReason returns the reason for which a live rank would drop the event's packet, or "" for an acceptable packet.
func (e *Event) dropReason() string {
	switch {
	case e.Extended != nil && !e.Extended.Defect.OK():
		return e.Extended.Defect.Kind.String()
	case e.Reason != handshake.ReasonNone:
		return e.Reason.String()
	}
	return ""
}

// hasBadByte reports whether the defect concerns one particular byte of the header.
func (e *Event) hasBadByte() bool {
	if e.Kind != BadEvent {
		return false
	}
	if x := e.Extended; x != nil {
		return x.Defect.Kind != protocol.DefectShort && x.Defect.Kind < protocol.DefectLength
	}
	return e.Reason <= handshake.ReasonType && e.Reason != handshake.ReasonShort
}

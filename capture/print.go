package capture

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// JSONEvent is an Event in the JSON form printed by zrlctl decode. Fields that do not apply are omitted.
type JSONEvent struct {
	Packet int64     `json:"packet"`
	Time   time.Time `json:"time"`
	Proto  string    `json:"proto"`
	Src    string    `json:"src_address"`
	Dst    string    `json:"dst_address"`
	// Length is the length in bytes of the datagram or, in a TCP stream, of the header or piece of payload.
	Length int `json:"length"`
	// Kind is packet, payload or bad.
	Kind    string  `json:"kind"`
	Type    string  `json:"type,omitempty"`
	Call    string  `json:"call,omitempty"`
	SrcRank *uint32 `json:"src,omitempty"`
	DstRank *uint32 `json:"dst,omitempty"`
	// Size is the size in the header, in words.
	Size *uint32 `json:"size,omitempty"`
	Tag  *uint8  `json:"tag,omitempty"`
	// Revokes names the earlier packet that this packet revokes.
	Revokes string `json:"revokes,omitempty"`
	// Message is the number of the message in the recording, counted from 1.
	Message int64 `json:"message,omitempty"`
	// Offset, Bytes, Padding and Total describe the position of payload in its message, as in Event. DataPacket is the
	// number of the packet with the DATA header.
	Offset        *int64 `json:"offset,omitempty"`
	Bytes         *int64 `json:"bytes,omitempty"`
	Padding       *int   `json:"padding,omitempty"`
	Total         *int64 `json:"total,omitempty"`
	DataPacket    int64  `json:"data_packet,omitempty"`
	Complete      bool   `json:"complete,omitempty"`
	Retransmitted bool   `json:"retransmitted,omitempty"`
	Duplicate     bool   `json:"duplicate,omitempty"`
	// Reason is the reason for which a live rank would drop the packet. Byte is the offset of the offending byte in the
	// packet's header.
	Reason string `json:"reason,omitempty"`
	Byte   *uint8 `json:"byte,omitempty"`
	// Extended holds the additional fields of a packet of the extended profile.
	Extended *JSONExtended `json:"extended,omitempty"`
	// Seen lists the recordings that contain the packet, if several recordings were joined. Fate is delivered, lost or
	// copied, if the recordings show it.
	Seen []JSONSighting `json:"seen,omitempty"`
	Fate string         `json:"fate,omitempty"`
}

// JSONSighting is a sighting of a packet in one of several recordings. Time is converted to the clock of the first
// recording.
type JSONSighting struct {
	Recording string    `json:"recording"`
	Packet    int64     `json:"packet"`
	Time      time.Time `json:"time"`
}

// JSON returns the event in its JSON form.
func (e *Event) JSON() JSONEvent {
	event := JSONEvent{
		Packet: e.Packet, Time: e.Time, Proto: e.Proto.String(), Src: e.Src.String(), Dst: e.Dst.String(),
		Length: e.Length, Kind: e.Kind.String(), Message: e.Message, Retransmitted: e.Retransmitted,
		Duplicate: e.Duplicate,
		Complete:  e.IsLastPiece,
	}
	if e.HasRanks {
		event.SrcRank, event.DstRank = new(e.Header.Src), new(e.Header.Dst)
	}
	if e.hasHeader() {
		event.Type, event.Call, event.Size, event.Tag = e.Header.Type.String(), e.Header.Call.String(), new(e.Header.Size),
			new(e.Header.Tag)
	}
	if x := e.Extended; x != nil {
		event.Tag, event.Extended = nil, x.json()
	}
	if e.IsData {
		event.Offset, event.Bytes, event.Padding, event.Total, event.DataPacket = new(e.Offset), new(e.Bytes),
			new(e.Padding), new(e.Total),
			e.DataPacket
	}
	if e.Trail != nil {
		for _, s := range e.Trail.Sightings {
			event.Seen = append(event.Seen, JSONSighting(s))
		}
		event.Fate = e.Trail.Fate.String()
	}
	event.Reason, event.Revokes = e.dropReason(), e.revocationText()
	if e.hasBadByte() {
		event.Byte = new(e.BadByte)
	}
	return event
}

// IsPacket reports whether the event is a ZRLMPI packet, valid or not, as opposed to other bytes.
func (e *Event) IsPacket() bool {
	return e.Extended != nil || e.hasHeader() ||
		e.Kind == BadEvent && e.Reason != handshake.ReasonShort && e.Reason != handshake.ReasonStartMark
}

// hasHeader reports whether the header of the event was decoded.
func (e *Event) hasHeader() bool {
	if e.Extended != nil {
		return e.Header.Type != 0
	}
	return e.Kind == PacketEvent ||
		e.Kind == BadEvent && (e.Reason == handshake.ReasonReserved || e.Reason == handshake.ReasonLength)
}

// Text describes the event in one line, without its time.
func (e *Event) Text() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s > %s %v %d: ", shortAddr(e.Src), shortAddr(e.Dst), e.Proto, e.Length)
	switch {
	case e.Extended != nil && e.hasHeader():
		s.WriteString(e.Extended.text())
	case e.hasHeader():
		s.WriteString(e.Header.String())
	case e.Kind == PayloadEvent && e.HasRanks:
		fmt.Fprintf(&s, "payload %d→%d", e.Header.Src, e.Header.Dst)
	case e.Kind == PayloadEvent:
		s.WriteString("payload")
	default:
		s.WriteString("no ZRLMPI packet")
	}
	if e.Message != 0 {
		fmt.Fprintf(&s, ", message %d", e.Message)
	}
	if e.IsData && e.Extended == nil {
		fmt.Fprintf(&s, ", bytes %s of %d", span(e.Offset, e.Bytes), e.Total)
		if e.Kind == PayloadEvent {
			fmt.Fprintf(&s, " (packet %d)", e.DataPacket)
		}
		if e.Padding > 0 {
			fmt.Fprintf(&s, ", padding %d", e.Padding)
		}
		if e.IsLastPiece {
			s.WriteString(", complete")
		}
	}
	switch {
	case e.Duplicate:
		s.WriteString(", duplicate")
	case e.Retransmitted:
		s.WriteString(", retransmitted")
	}
	if text := e.revocationText(); text != "" {
		s.WriteString(", " + text)
	}
	if reason := e.dropReason(); reason != "" {
		fmt.Fprintf(&s, " [%s", reason)
		if e.hasBadByte() {
			fmt.Fprintf(&s, ": byte %d", e.BadByte)
		}
		s.WriteByte(']')
	}
	e.writeTrail(&s)
	return s.String()
}

// writeTrail appends the sightings of the packet in several recordings, and the delays between them.
func (e *Event) writeTrail(s *strings.Builder) {
	if e.Trail == nil {
		return
	}
	for i, seen := range e.Trail.Sightings {
		fmt.Fprintf(s, ", %s:%d", seen.Recording, seen.Packet)
		if i > 0 {
			fmt.Fprintf(s, " +%.1f µs", float64(seen.Time.Sub(e.Trail.Sightings[0].Time).Nanoseconds())/1e3)
		}
	}
	switch e.Trail.Fate {
	case pcapng.FateLost:
		fmt.Fprintf(s, ", lost before %s", e.Trail.To)
	case pcapng.FateCopied:
		fmt.Fprintf(s, ", copied behind %s", e.Trail.From)
	case pcapng.FateUnknown, pcapng.FateDelivered:
	}
}

// span formats a range of bytes, such as "0–1383". It returns "none" for an empty range.
func span(off, n int64) string {
	if n == 0 {
		return "none"
	}
	return fmt.Sprintf("%d–%d", off, off+n-1)
}

// shortAddr formats an address, and omits the standard port.
func shortAddr(a netip.AddrPort) string {
	if a.Port() == protocol.Port {
		return a.Addr().String()
	}
	return a.String()
}

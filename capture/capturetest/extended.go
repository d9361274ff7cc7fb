package capturetest

import (
	"net/netip"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// ExtSession records packets that ranks 0 and 1 exchange in the extended profile. The ranks have the addresses
// 10.12.0.1 and 10.12.0.2, and their packets are 100 µs apart.
type ExtSession struct {
	Capture *Capture
	// Sessions holds the sessions of the two ranks. Numbers holds the number of each rank's last numbered packet.
	Sessions [2]protocol.Session
	Numbers  [2]uint32
	// Stream selects a TCP connection, with segments of at most SegmentLen bytes. If SegmentLen is 0, each packet is
	// one segment.
	Stream     bool
	SegmentLen int

	now      time.Time
	sequence [2]uint32
}

// NewExtSession returns an empty recording of two ranks that know each other's sessions.
func NewExtSession(stream bool) *ExtSession {
	return &ExtSession{Capture: New(Ethernet), Sessions: [2]protocol.Session{0xa0, 0xb1}, Stream: stream,
		now: generatedStart}
}

// Address returns the address of a rank.
func (t *ExtSession) Address(rank int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 12, 0, byte(rank + 1)}), protocol.Port)
}

// Advance advances the time.
func (t *ExtSession) Advance(d time.Duration) *ExtSession {
	t.now = t.now.Add(d)
	return t
}

// Send records a packet sent by a rank. It fills in ranks and sessions. It also fills in the packet number if packets
// of this type are numbered and header.Number is 0.
func (t *ExtSession) Send(from int, header protocol.ExtHeader, payload []byte) *ExtSession {
	header.Src, header.Dst = uint32(from), uint32(1-from)
	header.Session, header.PeerSession = t.Sessions[from], t.Sessions[1-from]
	if header.IsNumbered() && header.Number == 0 {
		t.Numbers[from]++
		header.Number = t.Numbers[from]
	}
	return t.SendRaw(from, protocol.AppendExtended(nil, &header, payload))
}

// SendRaw records arbitrary bytes b as if a rank had sent them.
func (t *ExtSession) SendRaw(from int, b []byte) *ExtSession {
	for len(b) > 0 {
		t.Advance(100 * time.Microsecond)
		src, dst := t.Address(from), t.Address(1-from)
		if !t.Stream {
			t.Capture.AddUDP(t.now, src, dst, b)
			return t
		}
		n := len(b)
		if t.SegmentLen > 0 {
			n = min(n, t.SegmentLen)
		}
		t.Capture.AddTCP(t.now, src, dst, Segment{Seq: t.sequence[from], Flags: ACK | PSH, Payload: b[:n]})
		t.sequence[from] += uint32(n)
		b = b[n:]
	}
	return t
}

// SendEager records an eager message from a rank, with size bytes of payload per packet, and the ACK from the receiver.
func (t *ExtSession) SendEager(from int, message uint32, payload []byte, size int) *ExtSession {
	h := protocol.ExtHeader{Type: protocol.Data, Flags: protocol.FlagEager, Message: message, Tag: 5,
		Length: uint32(len(payload))}
	t.sendPieces(from, h, payload, size)
	return t.SendAck(1 - from)
}

// SendRendezvous records a message from a rank, from its SEND_REQUEST to its ACK, with size bytes of payload per
// packet.
func (t *ExtSession) SendRendezvous(from int, message uint32, payload []byte, size int) *ExtSession {
	header := protocol.ExtHeader{Type: protocol.SendRequest, Message: message, Tag: 5, Length: uint32(len(payload))}
	t.Send(from, header, nil)
	clearing := protocol.ExtHeader{Type: protocol.ClearToSend, Call: protocol.RecvInt, Message: message,
		Length: header.Length, Acknowledged: t.Numbers[from] + 1}
	t.Send(1-from, clearing, nil)
	header.Type = protocol.Data
	if len(payload) > 0 {
		t.sendPieces(from, header, payload, size)
	}
	return t.SendAck(1 - from)
}

func (t *ExtSession) sendPieces(from int, h protocol.ExtHeader, payload []byte, size int) {
	for {
		n := min(size, len(payload))
		t.Send(from, h, payload[:n])
		h.Offset += uint32(n)
		if payload = payload[n:]; len(payload) == 0 {
			return
		}
	}
}

// SendAck records an ACK from a rank. The ACK acknowledges all packets sent to the rank so far, and the given ranges of
// higher numbers.
func (t *ExtSession) SendAck(from int, ranges ...protocol.Range) *ExtSession {
	payload := protocol.AppendAck(nil,
		&protocol.AckInfo{MessageLimit: 65537, EagerLimit: 1 << 20, Delay: 250 * time.Microsecond, Ranges: ranges})
	return t.Send(from, protocol.ExtHeader{Type: protocol.Ack, Call: protocol.RecvInt,
		Acknowledged: t.Numbers[1-from] + 1}, payload)
}

package mpe

import (
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// PacketRecorder is given the packets that are exchanged with a peer. Its method is called with the engine's lock held: it must be
// quick, and must not block or call the engine.
type PacketRecorder interface {
	// Packet: a packet was sent, or has arrived, at a time of the engine's clock. It has wire bytes, which begin with header, and go
	// on with payload; both are valid during the call only. Several datagrams that continue a message, and a message that is
	// handed to the transport as a whole, are one. A piece of a stream may be without header and payload.
	Packet(at handshake.Instant, sent bool, wire int, header, payload []byte)
}

// record hands a packet to the peer's recorder, if there is one.
func (p *peer) record(sent bool, wire int, header, payload []byte) {
	if r := p.cfg.Recorder; r != nil {
		r.Packet(p.e.at, sent, wire, header, payload)
	}
}

// receivedPacket counts and records a packet of a handshake.
func (p *peer) receivedPacket(b []byte) {
	p.received(b)
	p.record(false, len(b), b, nil)
}

// recordShort records a packet with a short header as the one with a whole header that it stands for.
func (l *extendedLink) recordShort(sent bool, s *protocol.ShortHeader, payload []byte) {
	x := &l.p.e.conns
	local, remote := l.conn.Session()
	h := protocol.ExtHeader{
		Src: uint32(l.p.rank), Dst: uint32(l.p.e.rank), Session: remote, PeerSession: local,
		Call: s.Datatype.Send(), Type: protocol.Data, Flags: protocol.FlagEager | protocol.FlagPlain,
		Number: s.Number, Acknowledged: s.Acknowledged, Message: s.Message, Comm: s.Comm, Tag: s.Tag, Length: uint32(len(payload)),
	}
	if sent {
		h.Src, h.Dst, h.Session, h.PeerSession = h.Dst, h.Src, local, remote
	}
	protocol.PutExtended(x.recorded[:], &h, payload)
	l.p.record(sent, protocol.ExtHeaderLen+len(payload), x.recorded[:], payload)
}

package core

import (
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
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

// CallRecorder is given the operations that the rank's program has posted. Its method is called as that of PacketRecorder is.
type CallRecorder interface {
	// Call: an operation was posted that has not ended at once, or one has ended. It is not called for sends to unobserved peers and receives
	// from them, whose times are not known. c is valid during the call only.
	Call(c *Call)
}

// Call is an operation of a program: a send, a receive, or a collective call.
type Call struct {
	// ID distinguishes it from the others of its rank, unless it has ended at once.
	ID handshake.ID
	// Collective is 0 for a message, of which Send is the direction.
	Collective coll.Collective
	Send       bool
	// Peer is AnySource for a collective call, and Tag is its number. A receive that waits has the source, the tag and the bytes that it was
	// posted with, which may be AnySource and AnyTag. Bytes are -1 in a v-form.
	Peer, Tag int
	Comm      uint32
	Bytes     int64
	// At is when it has ended, or was posted, which is Posted.
	At, Posted handshake.Instant
	Ended      bool
	Err        error
}

// recordPosted records that a call was posted, unless it has ended.
func recordPosted(e *Core, r *Request) {
	if e.cfg.Calls != nil && !r.Over {
		recordCall(e, r, false)
	}
}

// recordCall hands a call to the recorder.
func recordCall(e *Core, r *Request, ended bool) {
	if r.message != nil || r.discards || r.kind != opCollective && !e.observes(r.p) {
		return
	}
	c := &e.recordedCall
	*c = Call{
		ID: r.id, Collective: r.collective, Send: r.send(), Peer: r.peer, Tag: int(r.tag), Comm: r.comm, Bytes: int64(len(r.buf)),
		At: r.posted, Posted: r.posted,
	}
	if r.kind == opCollective {
		c.Bytes = r.Status.Bytes
	}
	if ended {
		c.At, c.Ended, c.Err = e.at, true, r.Err
		if r.kind == OpRecv && r.Err == nil {
			c.Peer, c.Tag, c.Bytes = r.Status.Peer, r.Status.Tag, r.Status.Bytes
		}
	}
	e.cfg.Calls.Call(c)
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

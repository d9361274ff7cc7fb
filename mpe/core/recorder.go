package core

import (
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// PacketRecorder receives the packets exchanged with a peer. Its method is called with the engine's lock
// held: it must be quick, and must not block or call the engine.
type PacketRecorder interface {
	// Packet records a packet sent or received at a time of the engine's clock. wire is the size of the packet in
	// bytes. The packet starts with header and continues with payload; both are valid during the call only. Several
	// continuation datagrams of a message count as one packet, and so does a message handed to the transport as a
	// whole. A piece of a stream may have neither header nor payload.
	Packet(at handshake.Instant, sent bool, wire int, header, payload []byte)
}

// CallRecorder receives the operations of the rank's program. Like PacketRecorder, it is called with the engine's
// lock held, must be quick, and must not block or call the engine.
type CallRecorder interface {
	// Call records that an operation was posted and is pending, or that it ended. It is not called for
	// sends to and receives from unobserved peers, whose times are unknown. c is valid during the call only.
	Call(c *Call)
}

// Call is an operation of a program: a send, a receive, or a collective call.
type Call struct {
	// ID identifies the operation on its rank, unless it ended at once.
	ID handshake.ID
	// Collective is 0 for a message; then Send is its direction.
	Collective coll.Collective
	Send       bool
	// For a collective call, Peer is AnySource and Tag is the number of the call. A pending receive has the source,
	// tag and bytes that it was posted with, which may be AnySource and AnyTag. Bytes is -1 for a v-form.
	Peer, Tag int
	Comm      uint32
	Bytes     int64
	// Posted is the time at which the operation was posted. At is the time at which it ended if Ended is set, and
	// otherwise equal to Posted.
	At, Posted handshake.Instant
	Ended      bool
	Err        error
}

// recordPosted records that a call was posted, unless it is already over.
func recordPosted(e *Core, r *Request) {
	if e.cfg.Calls != nil && !r.Done {
		recordCall(e, r, false)
	}
}

// recordCall passes a call to the recorder.
func recordCall(e *Core, r *Request, ended bool) {
	if r.message != nil || r.dropsMessage || r.kind != opCollective && !e.observes(r.p) {
		return
	}
	c := &e.recordedCall
	*c = Call{
		ID: r.id, Collective: r.collective, Send: r.isSend(), Peer: r.peer, Tag: int(r.tag), Comm: r.comm,
		Bytes: int64(len(r.buf)),
		At:    r.posted, Posted: r.posted,
	}
	if r.kind == opCollective {
		c.Bytes = r.Status.Bytes
	}
	if ended {
		c.At, c.Ended, c.Err = e.now, true, r.Err
		if r.kind == OpRecv && r.Err == nil {
			c.Peer, c.Tag, c.Bytes = r.Status.Peer, r.Status.Tag, r.Status.Bytes
		}
	}
	e.cfg.Calls.Call(c)
}

// record passes a packet to the peer's recorder, if it has one.
func (p *peer) record(sent bool, wire int, header, payload []byte) {
	if r := p.cfg.Recorder; r != nil {
		r.Packet(p.e.now, sent, wire, header, payload)
	}
}

// receivedPacket counts and records a handshake packet.
func (p *peer) receivedPacket(b []byte) {
	p.countReceived(b)
	p.record(false, len(b), b, nil)
}

// recordShort records a packet with a short header as the equivalent packet with a full header.
func (l *extendedLink) recordShort(sent bool, s *protocol.ShortHeader, payload []byte) {
	x := &l.p.e.connActions
	local, remote := l.conn.Sessions()
	h := protocol.ExtHeader{
		Src: uint32(l.p.rank), Dst: uint32(l.p.e.rank), Session: remote, PeerSession: local,
		Call: s.Datatype.SendCall(), Type: protocol.Data, Flags: protocol.FlagEager | protocol.FlagPlain,
		Number: s.Number, Acknowledged: s.Acknowledged, Message: s.Message, Comm: s.Comm, Tag: s.Tag,
		Length: uint32(len(payload)),
	}
	if sent {
		h.Src, h.Dst, h.Session, h.PeerSession = h.Dst, h.Src, local, remote
	}
	protocol.PutExtended(x.recorded[:], &h, payload)
	l.p.record(sent, protocol.ExtHeaderLen+len(payload), x.recorded[:], payload)
}

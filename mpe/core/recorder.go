package core

import (
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// PacketRecorder receives the packets exchanged with a peer. The engine holds its lock while it calls Packet, which
// must be quick, and must not block or call the engine.
type PacketRecorder interface {
	// Packet records a packet sent or received at a time on the engine's clock. wire is the size of the packet in
	// bytes. The packet starts with header and continues with payload; both are valid during the call only. Consecutive
	// continuation datagrams of a message may be recorded as one packet, as is a message handed to the transport as a
	// whole. For a piece of a stream, header and payload may both be nil.
	Packet(at handshake.Instant, sent bool, wire int, header, payload []byte)
}

// CallRecorder receives the operations of the rank's program. The engine holds its lock while it calls Call, which must
// be quick, and must not block or call the engine.
type CallRecorder interface {
	// Call records that an operation was posted and is pending, or that it ended. The engine does not record sends to
	// and receives from unobserved peers, because their times are unknown. c is valid during the call only.
	Call(c *Call)
}

// Call is an operation of a program: a send, a receive, or a collective call.
type Call struct {
	// ID identifies the operation on its rank; 0 for some sends that complete when they are posted.
	ID handshake.ID
	// Collective is 0 for a message, whose direction Send then indicates.
	Collective coll.Collective
	Send       bool
	// For a collective call, Peer is AnySource and Tag is the number of the call. For a pending receive, Peer, Tag and
	// Bytes are as posted, perhaps AnySource and AnyTag. Bytes is -1 for a v-form.
	Peer, Tag int
	Comm      uint32
	Bytes     int64
	// Posted is the time at which the operation was posted. At is the time at which it ended if Ended is set, and
	// Posted otherwise.
	At, Posted handshake.Instant
	Ended      bool
	Err        error
}

// recordPosted records that an operation was posted, unless it has already completed.
func recordPosted(e *Core, r *Request) {
	if e.cfg.Calls != nil && !r.Done {
		recordCall(e, r, false)
	}
}

// recordCall passes an operation of the program to the recorder.
func recordCall(core *Core, request *Request, ended bool) {
	if request.message != nil || request.dropsMessage || request.kind != opCollective && !core.observes(request.p) {
		return
	}
	call := &core.recordedCall
	*call = Call{
		ID: request.id, Collective: request.collective, Send: request.isSend(), Peer: request.peer, Tag: int(request.tag),
		Comm:  request.comm,
		Bytes: int64(len(request.buf)),
		At:    request.posted, Posted: request.posted,
	}
	if request.kind == opCollective {
		call.Bytes = request.Status.Bytes
	}
	if ended {
		call.At, call.Ended, call.Err = core.now, true, request.Err
		if request.kind == OpRecv && request.Err == nil {
			call.Peer, call.Tag, call.Bytes = request.Status.Peer, request.Status.Tag, request.Status.Bytes
		}
	}
	core.cfg.Calls.Call(call)
}

// record passes a packet to the peer's recorder, if any.
func (p *peer) record(sent bool, wire int, header, payload []byte) {
	if r := p.cfg.Recorder; r != nil {
		r.Packet(p.e.now, sent, wire, header, payload)
	}
}

// receivedPacket counts and records a handshake packet.
func (p *peer) receivedPacket(b []byte) {
	p.countReceived(len(b))
	p.record(false, len(b), b, nil)
}

// recordShort records a packet with a short header as the equivalent packet with a full header.
func (l *extendedLink) recordShort(sent bool, header *protocol.ShortHeader, payload []byte) {
	actions := &l.p.e.connActions
	local, remote := l.conn.Sessions()
	hdr := protocol.ExtHeader{
		Src: uint32(l.p.rank), Dst: uint32(l.p.e.rank), Session: remote, PeerSession: local,
		Call: header.Datatype.SendCall(), Type: protocol.Data, Flags: protocol.FlagEager | protocol.FlagPlain,
		Number: header.Number, Acknowledged: header.Acknowledged, Message: header.Message, Comm: header.Comm, Tag: header.Tag,
		Length: uint32(len(payload)),
	}
	if sent {
		hdr.Src, hdr.Dst, hdr.Session, hdr.PeerSession = hdr.Dst, hdr.Src, local, remote
	}
	protocol.PutExtended(actions.recorded[:], &hdr, payload)
	l.p.record(sent, protocol.ExtHeaderLen+len(payload), actions.recorded[:], payload)
}

package core

import (
	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpe/lease"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// This file leases the fast path (fast_path.go) to C code, and replays what C code has done with it. A replay changes
// the same state as the fast path does, so that counters, recorders and retransmissions do not depend on who sent a
// message.

// MemoryLessor is a Memory whose links C code can use.
type MemoryLessor interface {
	// LeaseLink describes the link to peer. It returns false if C code cannot use the link now.
	LeaseLink(peer int, to *lease.Link) bool
	// ReturnLink ends the use of the link, and adopts its positions.
	ReturnLink(peer int, from *lease.Link)
}

// Leases leases parts of a core to C code.
type Leases struct{ core *Core }

// CanLease reports whether the core is running and has nothing to do.
func (x *Leases) CanLease() bool {
	e := x.core
	return e.state == running && e.IsQuiet() && !e.calls.Busy() && !e.Reports.answerDue && !e.pending.coalesced
}

// RecordsCalls reports whether calls are recorded, with their times.
func (x *Leases) RecordsCalls() bool { return x.core.cfg.Calls != nil }

// LeasePeer describes what C code may send to and receive from a peer.
func (x *Leases) LeasePeer(rank int, to *lease.Peer) bool {
	p := x.core.peers.list[rank]
	l := p.shortLink()
	if l == nil || x.core.observes(p) || p.uncheckedLen < lease.MaxPayload {
		return false
	}
	memory, ok := l.memory.(MemoryLessor)
	if !ok {
		return false
	}
	a, ok := l.conn.Allow(lease.MaxPayload)
	if !ok || !memory.LeaseLink(rank, &to.Link) {
		return false
	}
	s, r := &a.Send, &a.Recv
	to.Sends = lease.Sends{Digest: s.Digest, Number: s.Number, Message: s.Message, Packets: limit(s.Packets),
		Bytes: limit(s.Bytes)}
	to.Recvs = lease.Recvs{Digest: r.Digest, Number: r.Number, Message: r.Message, Packets: limit(r.Packets),
		Bytes: limit(r.Bytes), Unacked: uint32(a.Unacked)}
	to.Used, to.Keeps = 0, 0
	if p.cfg.Recorder != nil {
		to.Keeps = 1
	}
	to.IsLeased = 1
	return true
}

// limit returns a limit on what a Block is used for.
func limit(n int) uint32 { return uint32(min(n, lease.MaxEvents*lease.MaxPayload)) }

// ReturnPeer ends the use of a peer by C code. The events must be replayed afterwards.
func (x *Leases) ReturnPeer(rank int, from *lease.Peer) {
	x.core.peers.at(rank).extended.memory.(MemoryLessor).ReturnLink(rank, &from.Link)
}

// MayRecv reports whether C code may receive messages in a communicator: no receive is posted, and no message waits.
func (x *Leases) MayRecv(comm uint32) bool {
	m := x.core.matching.forComm(comm)
	return m.Posted() == 0 && m.Unexpected() == 0
}

// ReplaySent replays the sending of a message to a peer.
func (x *Leases) ReplaySent(rank int, event *lease.Event, payload []byte) {
	l, actions := x.core.peers.at(rank).extended, &x.core.connActions
	actions.op = extended.SendOp{Length: int64(len(payload)), Comm: event.Comm, Tag: event.Tag,
		Datatype: protocol.Datatype(event.Wire)}
	l.conn.ShortHeader(&actions.op, &actions.short)
	l.recordSendNow(payload)
}

// ReplayReceived replays the receipt of a message from a peer. payload is only needed if the peer has a recorder.
func (x *Leases) ReplayReceived(rank int, event *lease.Event, payload []byte) {
	e := x.core
	l, header := e.peers.at(rank).extended, &e.connActions.short
	l.conn.ExpectedHeader(header)
	header.Acknowledged, header.Comm, header.Tag, header.Datatype = event.Acknowledged, event.Comm, event.Tag,
		protocol.Datatype(event.Wire)
	l.acceptShort(header, payload, int(event.Length))
	l.p.recvsDone++
	l.p.recvBytes += uint64(event.Length)
	e.lastEndAt, e.lastFailed = e.now, false
}

// LeaseCalls lets C code make the collective calls of a communicator.
func (x *Leases) LeaseCalls(comm uint32, to *lease.Sharing) bool { return x.core.calls.Lease(comm, to) }

// DescribeShape describes the last call in a communicator, if C code can make calls like it.
func (x *Leases) DescribeShape(comm uint32, shape *lease.Shape) bool {
	return x.core.calls.Describe(comm, shape)
}

// ReturnCalls ends the use of a communicator's shared buffers.
func (x *Leases) ReturnCalls(comm uint32, from *lease.Sharing) { x.core.calls.Return(comm, from) }

// ReplayCalled replays a collective call.
func (x *Leases) ReplayCalled(comm uint32, event *lease.Event, shape *lease.Shape, began, ended handshake.Instant) {
	e := x.core
	e.now = ended
	e.calls.Replay(comm, int(event.Tag), shape)
	e.nextID++
	e.lastEndAt, e.lastFailed = e.now, false
	if e.cfg.Calls != nil {
		call := &e.recordedCall
		*call = Call{ID: e.nextID, Collective: collective.Leased(shape), Peer: AnySource, Tag: int(event.Tag), Comm: comm,
			Bytes: int64(shape.Bytes), At: ended, Posted: began, Ended: true}
		e.cfg.Calls.Call(call)
	}
}

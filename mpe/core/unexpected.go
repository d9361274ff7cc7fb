package core

import (
	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// unexpected is an entry in the queue of unexpected messages: an inbound record, or a digest if the message rests.
// Digests are as small as possible, without pointers and without an entry in an inbox, because there may be millions.
type unexpected struct {
	inbound *inbound // nil if the message rests

	num      extended.Message
	since    handshake.Instant
	bytes    uint32
	source   int32
	tag      int32
	datatype protocol.Datatype
	eager    bool // payload holds the complete message
	payload  [extended.MaxInline]byte
}

// defaultRestAbove is the number of unexpected messages in a communicator above which further messages are stored as
// digests (rest). If there are fewer, they are likely to be matched soon, so that resting is not worthwhile.
const defaultRestAbove = 64

// restMessage replaces the record of an unexpected message by a digest, if the message is complete and small, or only
// announced. An advertised message keeps its record: there are at most 64 of them.
func (l *extendedLink) restMessage(in *inbound) {
	m := l.p.e.matching.forComm(in.comm)
	if m.Unexpected() <= l.p.e.matching.restThreshold || in.handle.Index() == 0 || in.recv != nil || in.accepted ||
		in.matchedBefore || in.advertised != 0 {
		return
	}
	u := unexpected{
		num: in.id, since: in.phases.Start, bytes: uint32(in.bytes), source: int32(in.source), tag: in.tag,
		datatype: in.datatype, eager: in.eager,
	}
	if !l.touchedConn().Rest(in.id, in.handle.Index()) {
		return
	}
	copy(u.payload[:], in.buf)
	m.Replace(in.handle, u)
	l.inbox.remove(in.id)
	l.p.e.matching.dropMessage(in)
	l.p.e.matching.inbounds.retire(in)
}

// wakeRecord returns the record of an unexpected message in a communicator, which it restores if the message rests.
// order is the position of the message among all arrived messages.
func (x *matching) wakeRecord(u *unexpected, comm uint32, order uint64) *inbound {
	if u.inbound != nil {
		return u.inbound
	}
	p := x.core.peers.at(int(u.source))
	in := x.inbounds.get()
	*in = inbound{
		source: int(u.source), comm: comm, tag: u.tag, bytes: int64(u.bytes), datatype: u.datatype,
		p: p, id: u.num, clearedBytes: int64(u.bytes), eager: u.eager, order: order,
	}
	in.phases.Start, in.phases.Request = u.since, u.since
	if u.eager {
		in.buf, in.ownsBuf = x.core.buffers.get(int(u.bytes)), true
		copy(in.buf, u.payload[:])
		in.highWater, in.storedBytes, in.isComplete = in.bytes, in.bytes, true
		in.phases.Data = u.since
	}
	p.extended.wakeMessage(in)
	return in
}

// wakeMessage hands a message that was resting back to the state machine and the inbox.
func (l *extendedLink) wakeMessage(in *inbound) {
	l.touchedConn().Wake(&extended.RestingMessage{
		Message: in.id, Comm: in.comm, Tag: uint32(in.tag), Length: in.bytes, Datatype: in.datatype,
		Since: in.phases.Start,
	})
	l.inbox.add(in.id, in)
}

// onRestingLost removes a resting message that will never be complete. index is the index of its handle in the queue.
func (l *extendedLink) onRestingLost(num extended.Message, index uint32) {
	for _, m := range l.p.e.matching.matchers {
		if u, h, ok := m.UnexpectedAt(index); ok && u.inbound == nil && u.num == num && int(u.source) == l.p.rank {
			m.RemoveUnexpected(h)
			return
		}
	}
}

// onRestsLost removes all incomplete resting messages of the peer.
func (l *extendedLink) onRestsLost() {
	for _, m := range l.p.e.matching.matchers {
		m.DeleteUnexpected(func(u unexpected) bool { return u.inbound == nil && !u.eager && int(u.source) == l.p.rank })
	}
}

// status returns the status that a probe reports when it finds the message.
func (u *unexpected) status(comm uint32) Status {
	if u.inbound != nil {
		return u.inbound.status()
	}
	s := Status{Peer: int(u.source), Datatype: u.datatype, Tag: int(u.tag), Comm: comm, Bytes: int64(u.bytes),
		Words: wordsOf(int64(u.bytes))}
	s.Phases.Start, s.Phases.Request = u.since, u.since
	if u.eager {
		s.Phases.Data = u.since
	}
	return s
}

package core

import (
	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// unexpected is an entry of the queue of unexpected messages: a record of the engine, or a digest while the message
// rests. There may be millions of digests, so they have no pointers and no entry in an inbox, and are as small as
// possible.
type unexpected struct {
	inbound *inbound // nil if the message rests

	num      extended.Message
	since    handshake.Instant
	bytes    uint32
	source   int32
	tag      int32
	datatype protocol.Datatype
	eager    bool // the message is complete, in payload
	payload  [extended.MaxInline]byte
}

// defaultRestAbove is the number of unexpected messages in a communicator above which further messages rest. Resting is
// not worthwhile for a few messages that are matched soon.
const defaultRestAbove = 64

// restMessage releases the record of a message that waits for a receive, if it is complete and small, or only
// announced. An advertised message keeps its record, because there are at most 64 such messages.
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

// wakeRecord returns the record of an unexpected message in a communicator; order is its position among all
// arrived messages. A message that rests is woken.
func (x *matching) wakeRecord(u *unexpected, comm uint32, order uint64) *inbound {
	if u.inbound != nil {
		return u.inbound
	}
	p := x.core.peers[u.source]
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

// wakeMessage restores a message that rested.
func (l *extendedLink) wakeMessage(in *inbound) {
	l.touchedConn().Wake(&extended.RestingMessage{
		Message: in.id, Comm: in.comm, Tag: uint32(in.tag), Length: in.bytes, Datatype: in.datatype,
		Since: in.phases.Start,
	})
	l.inbox.add(in.id, in)
}

// onRestingLost forgets a resting message that will never be complete; index is its position in its queue.
func (l *extendedLink) onRestingLost(num extended.Message, index uint32) {
	for _, m := range l.p.e.matching.matchers {
		if u, h, ok := m.UnexpectedAt(index); ok && u.inbound == nil && u.num == num && int(u.source) == l.p.rank {
			m.RemoveUnexpected(h)
			return
		}
	}
}

// onRestsLost forgets all resting messages that are not complete.
func (l *extendedLink) onRestsLost() {
	for _, m := range l.p.e.matching.matchers {
		m.DeleteUnexpected(func(u unexpected) bool { return u.inbound == nil && !u.eager && int(u.source) == l.p.rank })
	}
}

// status returns the status for the probe that finds the message.
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

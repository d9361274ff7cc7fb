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
	in *inbound // nil if the message rests

	num      extended.Message
	since    handshake.Instant
	bytes    uint32
	source   int32
	tag      int32
	datatype protocol.Datatype
	eager    bool // the message is complete, in payload
	payload  [extended.MaxInline]byte
}

// defaultRestAbove is the number of unexpected messages in a communicator above which further messages rest.
// Resting is not worthwhile for a few messages that are matched soon.
const defaultRestAbove = 64

// rest releases the record of a message that waits for a receive, if it is complete and small, or only announced.
// An advertised message keeps its record, because there are at most 64 such messages.
func (l *extendedLink) rest(in *inbound) {
	m := l.p.e.matching.of(in.comm)
	if m.Unexpected() <= l.p.e.matching.restAbove || in.handle.Index() == 0 || in.req != nil || in.accepted ||
		in.matchedBefore || in.advertised != 0 {
		return
	}
	u := unexpected{
		num: in.num, since: in.phases.Start, bytes: uint32(in.bytes), source: int32(in.source), tag: in.tag,
		datatype: in.datatype, eager: in.eager,
	}
	if !l.machine().Rest(in.num, in.handle.Index()) {
		return
	}
	copy(u.payload[:], in.buf)
	m.Replace(in.handle, u)
	l.ins.remove(in.num)
	l.p.e.matching.forget(in)
	l.p.e.matching.inbounds.retire(in)
}

// record returns the record of an unexpected message in a communicator; order is its position among all
// arrived messages. A message that rests is woken.
func (x *matching) record(u *unexpected, comm uint32, order uint64) *inbound {
	if u.in != nil {
		return u.in
	}
	p := x.c.peers[u.source]
	in := x.inbounds.get()
	*in = inbound{
		source: int(u.source), comm: comm, tag: u.tag, bytes: int64(u.bytes), datatype: u.datatype,
		p: p, num: u.num, room: int64(u.bytes), eager: u.eager, order: order,
	}
	in.phases.Start, in.phases.Request = u.since, u.since
	if u.eager {
		in.buf, in.own = x.c.buffers.get(int(u.bytes)), true
		copy(in.buf, u.payload[:])
		in.got, in.stored, in.arrived = in.bytes, in.bytes, true
		in.phases.Data = u.since
	}
	p.extended.wake(in)
	return in
}

// wake restores a message that rested.
func (l *extendedLink) wake(in *inbound) {
	l.machine().Wake(&extended.Woken{
		Message: in.num, Comm: in.comm, Tag: uint32(in.tag), Length: in.bytes, Datatype: in.datatype,
		Since: in.phases.Start,
	})
	l.ins.add(in.num, in)
}

// restLost forgets a resting message that will never be complete; index is its position in its queue.
func (l *extendedLink) restLost(num extended.Message, index uint32) {
	for _, m := range l.p.e.matching.all {
		if u, h, ok := m.UnexpectedAt(index); ok && u.in == nil && u.num == num && int(u.source) == l.p.rank {
			m.RemoveUnexpected(h)
			return
		}
	}
}

// restsLost forgets all resting messages that are not complete.
func (l *extendedLink) restsLost() {
	for _, m := range l.p.e.matching.all {
		m.DeleteUnexpected(func(u unexpected) bool { return u.in == nil && !u.eager && int(u.source) == l.p.rank })
	}
}

// status returns the status for the probe that finds the message.
func (u *unexpected) status(comm uint32) Status {
	if u.in != nil {
		return u.in.status()
	}
	s := Status{Peer: int(u.source), Datatype: u.datatype, Tag: int(u.tag), Comm: comm, Bytes: int64(u.bytes),
		Words: wordsOf(int64(u.bytes))}
	s.Phases.Start, s.Phases.Request = u.since, u.since
	if u.eager {
		s.Phases.Data = u.since
	}
	return s
}

package core

import (
	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// unexpected is a message among those that no receive has matched: a record of the engine, or what is left of one while
// the message rests. There may be millions of the latter, so they have no pointers, no place in an inbox, and are as
// small as can be.
type unexpected struct {
	in *inbound // nil: it rests

	num      extended.Message
	since    handshake.Instant
	bytes    uint32
	source   int32
	tag      int32
	datatype protocol.Datatype
	eager    bool // it is complete, and payload has it
	payload  [extended.MaxInline]byte
}

// defaultRestAbove is how many messages a communicator has unexpected before any of them rests: to rest does not pay
// for a few, which are matched soon.
const defaultRestAbove = 64

// rest gives the record of a message back that waits for a receive: of one that is complete and small, or announced.
// One that is advertised by its sender keeps it: there are 64 at most.
func (l *extendedLink) rest(in *inbound) {
	m := l.p.e.matching.of(in.comm)
	if m.Unexpected() <= l.p.e.matching.restAbove || in.handle.Index() == 0 || in.req != nil || in.accepted ||
		in.matchedBefore || in.advertised != 0 {
		return
	}
	u := unexpected{
		num: in.num, since: in.phases.Start, bytes: uint32(in.bytes), source: int32(in.source), tag: in.tag, datatype: in.datatype, eager: in.eager,
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

// record returns the record of an unexpected message in a communicator, whose place among all that arrived is order.
// One that rests does not any more.
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

// wake takes a message back that rested.
func (l *extendedLink) wake(in *inbound) {
	l.machine().Wake(&extended.Woken{
		Message: in.num, Comm: in.comm, Tag: uint32(in.tag), Length: in.bytes, Datatype: in.datatype, Since: in.phases.Start,
	})
	l.ins.add(in.num, in)
}

// restLost forgets a message that rests and will never be complete, whose place in its queue is index.
func (l *extendedLink) restLost(num extended.Message, index uint32) {
	for _, m := range l.p.e.matching.all {
		if u, h, ok := m.UnexpectedAt(index); ok && u.in == nil && u.num == num && int(u.source) == l.p.rank {
			m.RemoveUnexpected(h)
			return
		}
	}
}

// restsLost does so for all that rest and are not complete.
func (l *extendedLink) restsLost() {
	for _, m := range l.p.e.matching.all {
		m.DeleteUnexpected(func(u unexpected) bool { return u.in == nil && !u.eager && int(u.source) == l.p.rank })
	}
}

// status describes the message for the probe that finds it.
func (u *unexpected) status(comm uint32) Status {
	if u.in != nil {
		return u.in.status()
	}
	s := Status{Peer: int(u.source), Datatype: u.datatype, Tag: int(u.tag), Comm: comm, Bytes: int64(u.bytes), Words: wordsOf(int64(u.bytes))}
	s.Phases.Start, s.Phases.Request = u.since, u.since
	if u.eager {
		s.Phases.Data = u.since
	}
	return s
}

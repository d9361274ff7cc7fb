package mpe

import (
	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpe/match"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Messages of one packet between ranks that share memory. What is here is the shorter way through the
// engine for those that nothing is out of the ordinary with: from the caller's buffer to the transport,
// and from there to the receive that was posted. The others go the way of all packets.

// sendShort sends a message with a short header, if that may be done now.
func (l *extendedLink) sendShort(r *Request) bool {
	if r.kind != OpSend || r.flow != nil {
		return false
	}
	e, p := l.p.e, l.p
	op := extended.SendOp{Length: int64(len(r.buf)), Comm: r.comm, Tag: uint32(r.tag), Datatype: r.datatype}
	h := &e.conns.short
	if !l.fast.NextShort(&op, h) || !l.shorts.SendShort(p.rank, h, r.buf) {
		return false
	}
	// The peer has it: from here on nothing is urgent.
	buf := e.buffers.get(len(r.buf))
	copy(buf, r.buf)
	op.ID = l.outs.addCopy(buf, r.tag)
	p.sendErr = nil
	p.sent(protocol.Data, protocol.ShortHeaderLen+len(buf))
	e.conns.list = l.fast.SentShort(e.at, &op, e.conns.list[:0])
	if len(e.conns.list) > 0 {
		l.releaseAcked()
	}
	l.afterShort(l.fast.Changed())
	r.status.Phases.Start, r.status.Phases.Data = r.posted, e.at
	e.finish(r, nil)
	return true
}

// releaseAcked carries out the actions of SentShort: most are for messages that the peer has.
func (l *extendedLink) releaseAcked() {
	e := l.p.e
	for i := range e.conns.list {
		act := &e.conns.list[i]
		if act.Kind != extended.SendDone || !l.outs.at(act.ID).plain() {
			l.perform(nil)
			return
		}
		e.buffers.put(l.outs.at(act.ID).buf)
		l.outs.remove(act.ID)
		act.Kind = 0
	}
	e.conns.list = e.conns.list[:0]
}

// receiveShort takes a packet with a short header.
func (l *extendedLink) receiveShort(a *RxPacket) {
	p, e := l.p, l.p.e
	p.burst = 0
	if len(a.Bytes) < protocol.ShortHeaderLen || l.fast == nil {
		p.dropped(a, Drop{Reason: DropShort})
		return
	}
	p.received(a.Bytes)
	var h protocol.ShortHeader
	h.Decode((*[protocol.ShortHeaderLen]byte)(a.Bytes))
	payload := a.Bytes[protocol.ShortHeaderLen:]
	if r := l.receiverOf(&h, len(payload)); r != nil {
		flush := l.fast.ReceivedShort(e.at, &h, len(payload))
		copy(r.buf, payload)
		l.afterShort(flush)
		l.deliverShort(r, &h, len(payload))
		return
	}
	e.conns.list = l.machine().PacketShort(e.at, &h, payload, e.conns.list[:0])
	l.perform(a)
}

// receiverOf returns the receive that was posted for the message of a short header, or nil if there is none
// or the packet is not the one that is expected.
func (l *extendedLink) receiverOf(h *protocol.ShortHeader, length int) *Request {
	if collective.Internal(h.Comm) || !l.fast.ExpectsShort(h, length) {
		return nil
	}
	m := l.p.e.matchers.of(h.Comm)
	r, ok := m.Match(int32(l.p.rank), int32(h.Tag))
	if !ok {
		return nil
	}
	r.handle = match.Handle{}
	if r.flow != nil { // it is to be sent on
		_, _, r.handle, _ = m.Repost(int32(r.peer), r.matchTag(), r, r.order)
		return nil
	}
	return r
}

// deliverShort ends the receive of a message that is in its buffer.
func (l *extendedLink) deliverShort(r *Request, h *protocol.ShortHeader, length int) {
	e, p, s := l.p.e, l.p, &r.status
	p.recvsDone++
	p.recvBytes += uint64(length)
	s.Peer, s.Bytes, s.Words, s.Datatype, s.Tag, s.Comm = p.rank, int64(length), wordsOf(int64(length)), h.Datatype, int(h.Tag), h.Comm
	s.Phases = handshake.Phases{Start: r.posted, Request: e.at, Data: e.at}
	var err error
	if len(r.buf) < length {
		err = &TruncatedError{Source: p.rank, Posted: int64(len(r.buf)), Sent: int64(length)}
	}
	e.finish(r, err)
}

// afterShort has the end of the event deal with the peer, if that is necessary: seldom, as its deadline is
// seldom earlier than the one that is known.
func (l *extendedLink) afterShort(flush bool) {
	e, p := l.p.e, l.p
	if flush || !p.timed || e.due > e.at+l.ackDelay {
		e.touch(p)
	}
}

package extended

import "github.com/zrlmpi/zrlmpid/protocol"

// An eager message of one packet may bear a short header where memory carries the packets (E52). It is
// numbered, credited, acknowledged and retransmitted like any other; these functions are the shorter
// way to the same state, without actions, for the case that nothing is out of the ordinary.

// ackEveryShort is ackEvery where memory carries the packets: that nothing is lost makes their ACKs
// rarer than those of a network.
const ackEveryShort = 64

// NextShort sets the header h of a message that may be sent now in one packet with a short header. It
// changes nothing: SentShort follows when that was sent. A message that may not is for Send.
func (c *Conn) NextShort(op *SendOp, h *protocol.ShortHeader) (ok bool) {
	f, s := &c.flight, &c.sends
	switch {
	case !c.cfg.ShortHeaders, c.changed, c.session.remote == 0, op.Sync, op.Partial:
		return false
	case s.queued != nil, s.eager != nil, f.lost.count > 0, !c.controls.empty(), c.blocked():
		return false // something else goes first
	case op.Length > int64(c.cfg.MaxPayload), op.Length > int64(c.eagerLimit()), op.Length > int64(s.eagerLimit-s.eagerSent):
		return false
	case f.count+1 >= c.cwnd(), f.outstanding()+1 >= c.cfg.Window, f.bytes+op.Length+int64(c.cfg.MaxPayload) > c.bytes:
		return false // the one that fills the window asks for an ACK (E27)
	}
	*h = protocol.ShortHeader{
		Sessions: protocol.SessionDigest(c.session.local, c.session.remote), Number: f.next, Acknowledged: c.arrivals.next,
		Message: s.next, Comm: op.Comm, Tag: op.Tag, Datatype: op.Datatype,
	}
	return true
}

// SentShort is Send for the message for which NextShort has set a header, and which was sent.
func (c *Conn) SentShort(now Instant, op *SendOp, acts []Action) []Action {
	c.acts = acts
	f, s := &c.flight, &c.sends
	m := s.allocate()
	m.op, m.since, m.number, m.state, m.short = *op, now, s.next, Eager, true
	m.take, m.offset, m.flying, m.out = op.Length, op.Length, 1, true
	s.link(m)
	s.begun++
	s.next++
	s.eagerSent += uint32(op.Length)
	s.blocked = false
	p := f.add()
	if f.outstanding() == 1 {
		c.resume(now)
	}
	p.message, p.payload = m, int32(op.Length)
	h := &p.header // as it is retransmitted
	h.Dst, h.Src = c.cfg.Remote, c.cfg.Local
	h.Type, h.Call, h.Flags = protocol.Data, op.Datatype.Send(), c.plain|protocol.FlagEager
	h.Session, h.PeerSession = c.session.local, c.session.remote
	h.Message, h.Comm, h.Tag, h.Length = m.number, op.Comm, op.Tag, uint32(op.Length)
	f.transmitted(now, p)
	c.arrivals.advertised()
	c.stats.PacketsSent[protocol.Data]++
	c.stats.BytesSent[protocol.Data] += uint64(op.Length)
	c.stats.SendsEager++
	c.timed = false
	c.catchUp(now)
	return c.acts
}

// ExpectsShort reports whether a packet with a short header, and so many bytes of payload, is the one that
// comes next, and so is its message. If a receive matches that, ReceivedShort follows, and otherwise
// PacketShort.
func (c *Conn) ExpectsShort(h *protocol.ShortHeader, length int) bool {
	a, r, s := &c.arrivals, &c.recvs, &c.session
	if h.Sessions != protocol.SessionDigest(s.remote, s.local) || s.remote == 0 || h.Number != a.next || a.gaps() ||
		h.Message != r.expected || int32(h.Acknowledged-c.flight.next) > 0 {
		return false
	}
	messages, eager := r.limits(&c.cfg)
	return int32(h.Message-messages) < 0 && uint32(length) <= eager-r.eager
}

// ReceivedShort is PacketShort and Accept for a message that ExpectsShort expects and a receive has
// matched. Its payload is the caller's to copy. It reports whether Flush is to be called for that.
func (c *Conn) ReceivedShort(now Instant, h *protocol.ShortHeader, length int) (flush bool) {
	a, r := &c.arrivals, &c.recvs
	c.session.lastHeardAt, c.session.unansweredHellos = now, 0
	c.heard = h.Acknowledged
	c.stats.PacketsReceived[protocol.Data]++
	c.stats.BytesReceived[protocol.Data] += uint64(length)
	c.stats.Arrived++
	a.next++
	a.end = a.next
	if a.unacknowledged == 0 {
		a.since = now
	}
	a.unacknowledged++
	a.bytes += length
	r.expected++
	r.matched++
	r.eager += uint32(length)
	r.matchedBytes += uint32(length)
	c.timed = false
	if a.unacknowledged >= ackEveryShort || a.bytes >= ackBytes || r.creditDue(&c.cfg) {
		a.now, c.changed = true, true
	}
	return c.changed
}

// PacketShort is Packet for a packet with a short header.
func (c *Conn) PacketShort(now Instant, s *protocol.ShortHeader, payload []byte, acts []Action) []Action {
	c.acts, c.changed = acts, true
	h := &c.parsing
	*h = protocol.ExtHeader{
		Dst: c.cfg.Local, Src: c.cfg.Remote, Call: s.Datatype.Send(), Type: protocol.Data, Flags: protocol.FlagEager | protocol.FlagPlain,
		Number: s.Number, Acknowledged: s.Acknowledged, Message: s.Message, Comm: s.Comm, Tag: s.Tag, Length: uint32(len(payload)),
	}
	if s.Sessions == protocol.SessionDigest(c.session.remote, c.session.local) {
		h.Session, h.PeerSession = c.session.remote, c.session.local
	}
	c.parsed(now, h, payload) // which drops it if it has no session
	return c.acts
}

// catchUp takes the acknowledgements that came with short headers. Until then the packets that they are for count as
// in flight. It is called once for several of them, and when nothing waits for what came with them.
func (c *Conn) catchUp(now Instant) {
	f := &c.flight
	if int32(c.heard-f.base) <= 0 {
		return
	}
	c.acknowledged(now, c.heard, nil, 0)
	c.changed = c.changed || c.sends.queued != nil || c.sends.cleared != nil || f.lost.count > 0
}

// Changed reports whether Flush is to be called.
func (c *Conn) Changed() bool { return c.changed }

// ackEvery is how many packets are acknowledged at once (E26).
func (c *Conn) ackEvery() int {
	if c.cfg.ShortHeaders {
		return ackEveryShort
	}
	return ackEvery
}

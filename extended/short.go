package extended

import "github.com/zrlmpi/zrlmpid/protocol"

// An eager message of one packet may bear a short header where memory carries the packets (E52). It is
// numbered, credited and acknowledged like any other; the functions here are the shorter way to the same
// state, without actions, for the case that nothing is out of the ordinary. As soon as something is, the messages
// become ordinary ones (lengthen).

// shorts are the messages that were sent with short headers and are not acknowledged, in a ring, the oldest
// first. Their packets have the numbers that follow those of the flight.
type shorts struct {
	ring         []shortSend // a power of two
	first, count int
	bytes        int64
	message      uint32 // number of the message after the last
	untimed      int    // the last so many were sent since the time was last known
}

// shortSend is what is to be known of one to retransmit it.
type shortSend struct {
	comm, tag, length uint32
	datatype          protocol.Datatype
	sent              Instant
}

func (q *shorts) at(i int) *shortSend { return &q.ring[(q.first+i)&(len(q.ring)-1)] }

func (q *shorts) len() int {
	if q == nil {
		return 0
	}
	return q.count
}

// due returns when the time-out of the oldest expires, or never. Those that were sent at no known time are due, to have one.
func (q *shorts) due(rto Instant) Instant {
	switch {
	case q.len() == 0:
		return never
	case q.untimed > 0:
		return 0
	}
	return q.at(0).sent + rto
}

// push adds one for its caller to fill in.
func (q *shorts) push(length uint32) *shortSend {
	if q.count == len(q.ring) {
		old := *q
		q.ring, q.first = make([]shortSend, max(16, 2*len(old.ring))), 0
		for i := range old.count {
			q.ring[i] = *old.at(i)
		}
	}
	q.count++
	q.bytes += int64(length)
	return q.at(q.count - 1)
}

func (q *shorts) pop() (s shortSend) {
	s = *q.at(0)
	q.first, q.count = (q.first+1)&(len(q.ring)-1), q.count-1
	q.bytes -= int64(s.length)
	return s
}

// ackEveryShort is ackEvery where memory carries the packets: that nothing is lost makes their ACKs
// rarer than those of a network.
const ackEveryShort = 64

// ackEvery is how many packets are acknowledged at once (E26).
func (c *Config) ackEvery() int32 {
	if c.ShortHeaders {
		return ackEveryShort
	}
	return ackEvery
}

// NextShort sets the header h of a message that may be sent now in one packet with a short header. It
// changes nothing: SentShort follows when that was sent. A message that may not is for Send.
func (c *Conn) NextShort(op *SendOp, h *protocol.ShortHeader) (ok bool) {
	f, s, q := &c.path.flight, &c.sends, c.path.shorts
	switch {
	case q == nil, c.changed, c.session.remote == 0, op.Sync, op.Announce, op.Partial:
		return false
	case s.queued != nil, s.eager != nil, f.lost.count > 0, !c.controls.empty(),
		int32(s.limit-s.number) <= int32(s.reserve()):
		return false // something else goes first
	case op.Length > int64(c.cfg.MaxPayload), op.Length > int64(c.cfg.EagerLimit), op.Length > int64(s.eagerLimit-s.eagerSent):
		return false
	case f.outstanding()+q.count+1 >= c.path.most, f.bytes+q.bytes+op.Length+int64(c.cfg.MaxPayload) > c.path.bytes:
		return false // the one that fills the window asks for an ACK (E27)
	}
	h.Sessions = protocol.SessionDigest(c.session.local, c.session.remote)
	h.Number, h.Acknowledged, h.Message = f.next+uint32(q.count), c.arrivals.next, s.number
	h.Comm, h.Tag, h.Datatype = op.Comm, op.Tag, op.Datatype
	return true
}

// SentShort is Send for the message for which NextShort has set a header, and which was sent. Its caller
// keeps the payload until Shorts says that it is not needed any more. It needs no time, as to read a clock takes longer
// than all of this: the message counts as sent at the next event, which its caller makes sure of.
func (c *Conn) SentShort(op *SendOp) {
	s, q := &c.sends, c.path.shorts
	q.untimed++
	c.path.flight.began = c.path.unused()
	m := q.push(uint32(op.Length))
	m.comm, m.tag, m.length, m.datatype, m.sent = op.Comm, op.Tag, uint32(op.Length), op.Datatype, never
	s.number++
	q.message = s.number
	s.eagerSent += uint32(op.Length)
	s.blocked = false
	c.arrivals.advertised()
	c.stats.PacketsSent[protocol.Data]++
	c.stats.BytesSent[protocol.Data] += uint64(op.Length)
	c.stats.SendsEager++
	c.timed = false
}

// Shorts returns how many of the messages for which SentShort was called, the last ones, are not
// acknowledged and were not Kept, and how many bytes they have together.
func (c *Conn) Shorts() (messages, bytes int) { return c.path.shorts.len(), int(c.path.shorts.bytes) }

// ExpectsShort reports whether a packet with a short header, and so many bytes of payload, is the one that
// comes next, and so is its message. If a receive matches that, ReceivedShort follows, and otherwise
// PacketShort.
func (c *Conn) ExpectsShort(h *protocol.ShortHeader, length int) bool {
	a, r, s, p := &c.arrivals, &c.recvs, &c.session, &c.path
	if h.Sessions != protocol.SessionDigest(s.remote, s.local) || s.remote == 0 || h.Number != a.next || a.gaps() ||
		h.Message != r.expected || int32(h.Acknowledged-p.unused()) > 0 ||
		p.flight.outstanding() > 0 && h.Acknowledged != p.flight.base {
		return false // what it acknowledges may let more be sent
	}
	messages, eager := r.limits()
	return int32(h.Message-messages) < 0 && uint32(length) <= eager-r.eager
}

// ReceivedShort is PacketShort and Accept for a message that ExpectsShort expects and a receive has
// matched. Its payload is the caller's to copy. It reports whether Flush is to be called for that.
func (c *Conn) ReceivedShort(now Instant, h *protocol.ShortHeader, length int) (flush bool) {
	a, r := &c.arrivals, &c.recvs
	c.session.lastHeardAt, c.session.unansweredHellos = now, 0
	if n := h.Acknowledged - c.path.flight.next; int32(n) > 0 {
		c.path.shortsAcked(now, n)
	}
	c.path.timeShorts(now)
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
	if a.unacknowledged >= ackEveryShort || a.bytes >= ackBytes || r.creditDue() {
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

// shortID begins the IDs of messages that were sent with short headers. The rest is the packet's number.
const shortID ID = 1 << 63

// lengthen has the messages that were sent with short headers go on like others, which actions report.
func (c *Conn) lengthen() {
	q := c.path.shorts
	if q.len() == 0 {
		return
	}
	f, s := &c.path.flight, &c.sends
	for q.count > 0 {
		number, a := q.message-uint32(q.count), c.next()
		a.Kind, a.ID, a.Offset = Kept, shortID|ID(f.next), q.bytes
		x := q.pop()
		a.Length = int64(x.length)
		m := s.allocate()
		m.op = SendOp{ID: shortID | ID(f.next), Length: int64(x.length), Comm: x.comm, Tag: x.tag, Datatype: x.datatype}
		m.since, m.number, m.state, m.take, m.offset, m.flying, m.out = x.sent, number, Eager, int64(x.length), int64(x.length), 1, true
		s.insert(m)
		s.begun++
		s.byID.put(m.op.ID, m)
		p := f.add()
		p.message, p.payload = m, int32(x.length)
		h := &p.header
		h.Dst, h.Src = c.cfg.Remote, c.cfg.Local
		h.Type, h.Call, h.Flags = protocol.Data, x.datatype.Send(), c.plain|protocol.FlagEager
		h.Session, h.PeerSession = c.session.local, c.session.remote
		h.Message, h.Comm, h.Tag, h.Length = m.number, x.comm, x.tag, x.length
		f.transmitted(x.sent, p)
	}
}

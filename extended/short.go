package extended

import "github.com/zrlmpi/zrlmpid/protocol"

// Where packets are carried by memory, an eager message of one packet may have a short header (E52). It is numbered,
// credited and acknowledged like any other. The functions here are a fast path to the same state, without actions, for
// the common case. In any other case the messages become ordinary ones (lengthen).

// shorts has the messages sent with short headers that are not acknowledged, in a ring, oldest first. The numbers of
// their packets follow the numbers of flight.
type shorts struct {
	ring         []shortSend // length is a power of two
	first, count int
	bytes        int64
	message      uint32 // number of the message after the last
	untimed      int    // number of the last messages that were sent since the time was last known
}

// shortSend is the state needed to retransmit a message.
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

// due returns the time at which the time-out of the oldest message expires, or never. Messages without a send time are
// due at once, to get one.
func (q *shorts) due(rto Instant) Instant {
	switch {
	case q.len() == 0:
		return never
	case q.untimed > 0:
		return 0
	}
	return q.at(0).sent + rto
}

// push adds a message, and returns it for the caller to fill in.
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

// ackEveryShort is ackEvery where packets are carried by memory: since none is lost, ACKs may be rarer than on a
// network.
const ackEveryShort = 64

// ackEvery returns the number of packets after which an ACK is sent at once (E26).
func (c *Config) ackEvery() int32 {
	if c.ShortHeaders {
		return ackEveryShort
	}
	return ackEvery
}

// NextShort sets h to the header of a message that may be sent now in one packet with a short header, and returns true.
// It changes nothing: call SentShort after the packet is sent. If it returns false, use Send.
func (c *Conn) NextShort(op *SendOp, h *protocol.ShortHeader) (ok bool) {
	f, s, q := &c.path.flight, &c.sends, c.path.shorts
	switch {
	case q == nil, c.changed, c.session.remote == 0, op.Sync, op.Announce, op.Partial:
		return false
	case s.queued != nil, s.eager != nil, f.lost.count > 0, !c.controls.empty(),
		int32(s.limit-s.number) <= int32(s.reserve()):
		return false // something else goes first
	case op.Length > int64(c.cfg.MaxPayload), op.Length > int64(c.cfg.EagerLimit),
		op.Length > int64(s.eagerLimit-s.eagerSent):
		return false
	case f.outstanding()+q.count+1 >= c.path.most, f.bytes+q.bytes+op.Length+int64(c.cfg.MaxPayload) > c.path.bytes:
		return false // the packet that fills the window asks for an ACK (E27)
	}
	h.Sessions = protocol.SessionDigest(c.session.local, c.session.remote)
	h.Number, h.Acknowledged, h.Message = f.next+uint32(q.count), c.arrivals.next, s.number
	h.Comm, h.Tag, h.Datatype = op.Comm, op.Tag, op.Datatype
	return true
}

// SentShort replaces Send for a message whose header was set by NextShort, after its packet was sent. The caller keeps
// the payload until Shorts shows that it is not needed any more. SentShort needs no time, because reading a clock would
// take longer than the rest of it: the send time of the message is the time of the next event, which the caller must
// ensure.
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

// Shorts returns the number of messages passed to SentShort, counted from the last one, that are neither acknowledged
// nor Kept, and the total of their lengths in bytes.
func (c *Conn) Shorts() (messages, bytes int) { return c.path.shorts.len(), int(c.path.shorts.bytes) }

// ExpectsShort reports whether a packet with a short header and length bytes of payload is the next packet, of the next
// message. If a receive matches the message, call ReceivedShort, otherwise PacketShort.
func (c *Conn) ExpectsShort(h *protocol.ShortHeader, length int) bool {
	a, r, s, p := &c.arrivals, &c.recvs, &c.session, &c.path
	if h.Sessions != protocol.SessionDigest(s.remote, s.local) || s.remote == 0 || h.Number != a.next || a.gaps() ||
		h.Message != r.expected || int32(h.Acknowledged-p.unused()) > 0 ||
		p.flight.outstanding() > 0 && h.Acknowledged != p.flight.base {
		return false // its acknowledgement may allow more to be sent
	}
	messages, eager := r.limits()
	return int32(h.Message-messages) < 0 && uint32(length) <= eager-r.eager
}

// ReceivedShort replaces PacketShort and Accept for a message that ExpectsShort expects and that a receive has matched.
// The caller copies the payload. It reports whether Flush must be called.
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
		Dst: c.cfg.Local, Src: c.cfg.Remote, Call: s.Datatype.Send(), Type: protocol.Data,
		Flags:  protocol.FlagEager | protocol.FlagPlain,
		Number: s.Number, Acknowledged: s.Acknowledged, Message: s.Message, Comm: s.Comm, Tag: s.Tag,
		Length: uint32(len(payload)),
	}
	if s.Sessions == protocol.SessionDigest(c.session.remote, c.session.local) {
		h.Session, h.PeerSession = c.session.remote, c.session.local
	}
	c.parsed(now, h, payload) // drops it if it has no session
	return c.acts
}

// shortID begins the IDs of messages sent with short headers. The rest is the number of the packet.
const shortID ID = 1 << 63

// lengthen converts the messages sent with short headers to ordinary sends, and reports them by Kept actions.
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
		m.since, m.number, m.state, m.take, m.offset, m.flying, m.out = x.sent, number, Eager, int64(x.length),
			int64(x.length), 1, true
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

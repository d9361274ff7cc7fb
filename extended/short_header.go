package extended

import "github.com/zrlmpi/zrlmpid/protocol"

// If shared memory carries the packets, an eager message of one packet may have a short header (E52). The message is
// numbered, credited and acknowledged like any other. The functions in this file are a fast path for the common case:
// they update the same state, but return no actions. In every other case, convertShorts converts the messages to
// ordinary ones.

// shorts is a ring of the unacknowledged messages that were sent with short headers, oldest first. The numbers of their
// packets follow the numbers in flight.
type shorts struct {
	ring        []shortSend // length is a power of two
	head, count int
	bytes       int64
	nextMessage uint32 // the last message's number plus 1
	unstamped   int    // number of messages at the end without a send time
}

// shortSend holds what is needed to retransmit a message that was sent with a short header.
type shortSend struct {
	comm, tag, length uint32
	datatype          protocol.Datatype
	sentAt            Instant
}

func (q *shorts) entry(i int) *shortSend { return &q.ring[(q.head+i)&(len(q.ring)-1)] }

func (q *shorts) len() int {
	if q == nil {
		return 0
	}
	return q.count
}

// deadline returns the time at which the timeout of the oldest unacknowledged message expires, or never. It returns 0
// if a message has no send time yet.
func (q *shorts) deadline(rto Instant) Instant {
	switch {
	case q.len() == 0:
		return never
	case q.unstamped > 0:
		return 0
	}
	return q.entry(0).sentAt + rto
}

// push adds a message of the given length and returns it. The caller sets its other fields.
func (q *shorts) push(length uint32) *shortSend {
	if q.count == len(q.ring) {
		old := *q
		q.ring, q.head = make([]shortSend, max(16, 2*len(old.ring))), 0
		for i := range old.count {
			q.ring[i] = *old.entry(i)
		}
	}
	q.count++
	q.bytes += int64(length)
	return q.entry(q.count - 1)
}

func (q *shorts) pop() (s shortSend) {
	s = *q.entry(0)
	q.head, q.count = (q.head+1)&(len(q.ring)-1), q.count-1
	q.bytes -= int64(s.length)
	return s
}

// ackEveryShort replaces ackEvery if shared memory carries the packets. Since no packet is lost, ACKs may be rarer than
// on a network.
const ackEveryShort = 64

// ackEvery returns the number of unacknowledged packets after which an ACK is sent at once (E26).
func (c *Config) ackEvery() int32 {
	if c.ShortHeaders {
		return ackEveryShort
	}
	return ackEvery
}

// PrepareShort reports whether op may be sent now in one packet with a short header, and if so writes that header to
// header. It does not change the Conn: call SentShort after the packet was sent. If PrepareShort returns false, call
// Send.
func (c *Conn) PrepareShort(op *SendOp, header *protocol.ShortHeader) (ok bool) {
	f, send, q := &c.path.flight, &c.sends, c.path.shorts
	switch {
	case q == nil, c.changed, c.session.remote == 0, op.Sync, op.Announce, op.Partial:
		return false
	case send.queued != nil, send.eager != nil, f.lost.count > 0, !c.controls.empty(),
		int32(send.messageLimit-send.number) <= int32(send.reserve()):
		return false // something else has to be sent first, or credit is short
	case op.Length > int64(c.cfg.MaxPayload), op.Length > int64(c.cfg.EagerLimit),
		op.Length > int64(send.eagerLimit-send.eagerSent):
		return false
	case f.outstanding()+q.count+1 >= c.path.maxInFlight,
		f.bytes+q.bytes+op.Length+int64(c.cfg.MaxPayload) > c.path.maxFlightBytes:
		return false // the packet that fills the window asks for an ACK (E27)
	}
	c.ShortHeader(op, header)
	return true
}

// ShortHeader writes the header of the next message to header.
func (c *Conn) ShortHeader(op *SendOp, header *protocol.ShortHeader) {
	header.SessionDigest = protocol.SessionDigest(c.session.local, c.session.remote)
	header.Number, header.Acknowledged, header.Message = c.path.nextNumber(), c.arrivals.firstMissing, c.sends.number
	header.Comm, header.Tag, header.Datatype = op.Comm, op.Tag, op.Datatype
}

// SentShort replaces Send for a message whose header PrepareShort has written. Call it after the packet was sent. The
// caller keeps the payload until ShortsInFlight shows that the payload is no longer needed. SentShort has no time
// parameter, because reading a clock would take longer than everything else it does; the time of the next event becomes
// the send time of the message. The caller must ensure that an event follows.
func (c *Conn) SentShort(op *SendOp) {
	send, q := &c.sends, c.path.shorts
	q.unstamped++
	c.path.flight.lastBegun = c.path.nextNumber()
	m := q.push(uint32(op.Length))
	m.comm, m.tag, m.length, m.datatype, m.sentAt = op.Comm, op.Tag, uint32(op.Length), op.Datatype, never
	send.number++
	q.nextMessage = send.number
	send.eagerSent += uint32(op.Length)
	send.exhaustedNoted = false
	c.arrivals.clearUnacked()
	c.stats.PacketsSent[protocol.Data]++
	c.stats.BytesSent[protocol.Data] += uint64(op.Length)
	c.stats.EagerSends++
	c.deadlineValid = false
}

// ShortsInFlight returns the number of messages passed to SentShort that are neither acknowledged nor Kept, and their
// total length in bytes. They are the last messages passed to SentShort.
func (c *Conn) ShortsInFlight() (messages, bytes int) {
	return c.path.shorts.len(), int(c.path.shorts.bytes)
}

// ExpectsShort reports whether a packet with a short header and length bytes of payload is the next expected packet and
// begins the next message. If so, and if a receive matches the message, call ReceivedShort; otherwise call PacketShort.
func (c *Conn) ExpectsShort(header *protocol.ShortHeader, length int) bool {
	a, recv, s, p := &c.arrivals, &c.recvs, &c.session, &c.path
	if header.SessionDigest != protocol.SessionDigest(s.remote, s.local) || s.remote == 0 ||
		header.Number != a.firstMissing || a.hasGaps() ||
		header.Message != recv.nextMessage || int32(header.Acknowledged-p.nextNumber()) > 0 ||
		p.flight.outstanding() > 0 && header.Acknowledged != p.flight.base {
		return false // its acknowledgement may allow more packets to be sent
	}
	messages, eager := recv.limits()
	return int32(header.Message-messages) < 0 && uint32(length) <= eager-recv.eagerBytes
}

// ExpectedHeader writes those fields of the next expected short header that the Conn determines.
func (c *Conn) ExpectedHeader(h *protocol.ShortHeader) {
	h.SessionDigest = protocol.SessionDigest(c.session.remote, c.session.local)
	h.Number, h.Message = c.arrivals.firstMissing, c.recvs.nextMessage
}

// ReceivedShort replaces PacketShort and Accept for a message that ExpectsShort has accepted and a receive has matched.
// The caller copies the payload. ReceivedShort reports whether Flush must be called.
func (c *Conn) ReceivedShort(now Instant, h *protocol.ShortHeader, length int) (flush bool) {
	a, recv := &c.arrivals, &c.recvs
	c.session.lastPacketAt, c.session.unansweredHellos = now, 0
	if n := h.Acknowledged - c.path.flight.nextNumber; int32(n) > 0 {
		c.path.onShortsAcked(now, n)
	}
	c.path.stampShorts(now)
	c.stats.PacketsReceived[protocol.Data]++
	c.stats.BytesReceived[protocol.Data] += uint64(length)
	c.stats.MessagesArrived++
	a.firstMissing++
	a.end = a.firstMissing
	if a.unackedPackets == 0 {
		a.unackedSince = now
	}
	a.unackedPackets++
	a.unackedBytes += length
	recv.nextMessage++
	recv.matched++
	recv.eagerBytes += uint32(length)
	recv.matchedBytes += uint32(length)
	c.deadlineValid = false
	if a.unackedPackets >= ackEveryShort || a.unackedBytes >= ackBytes || recv.creditDue() {
		a.ackNow, c.changed = true, true
	}
	return c.changed
}

// PacketShort is like Packet, for a packet with a short header.
func (c *Conn) PacketShort(now Instant, header *protocol.ShortHeader, payload []byte, acts []Action) []Action {
	c.acts, c.changed = acts, true
	hdr := &c.rxHeader
	*hdr = protocol.ExtHeader{
		Dst: c.cfg.Local, Src: c.cfg.Remote, Call: header.Datatype.SendCall(), Type: protocol.Data,
		Flags:  protocol.FlagEager | protocol.FlagPlain,
		Number: header.Number, Acknowledged: header.Acknowledged, Message: header.Message, Comm: header.Comm, Tag: header.Tag,
		Length: uint32(len(payload)),
	}
	if header.SessionDigest == protocol.SessionDigest(c.session.remote, c.session.local) {
		hdr.Session, hdr.PeerSession = c.session.remote, c.session.local
	}
	c.onPeerPacket(now, hdr, payload) // drops a packet with the wrong sessions
	return c.acts
}

// shortID is the bit that distinguishes the IDs of messages sent with short headers. The other bits are the packet
// number.
const shortID ID = 1 << 63

// convertShorts converts the unacknowledged messages sent with short headers to ordinary sends, and reports each by a
// Kept action.
func (c *Conn) convertShorts() {
	q := c.path.shorts
	if q.len() == 0 {
		return
	}
	f, s := &c.path.flight, &c.sends
	for q.count > 0 {
		number, a := q.nextMessage-uint32(q.count), c.nextAction()
		a.Kind, a.ID, a.Offset = Kept, shortID|ID(f.nextNumber), q.bytes
		send := q.pop()
		a.Length = int64(send.length)
		message := s.allocate()
		message.op = SendOp{ID: shortID | ID(f.nextNumber), Length: int64(send.length), Comm: send.comm, Tag: send.tag,
			Datatype: send.datatype}
		message.postedAt, message.number, message.state, message.bytesToSend, message.bytesSent, message.unackedPackets,
			message.allSent = send.sentAt, number, Eager, int64(send.length),
			int64(send.length), 1, true
		s.insert(message)
		s.begunSends++
		s.byID.put(message.op.ID, message)
		pkt := f.add()
		pkt.message, pkt.payload = message, int32(send.length)
		h := &pkt.header
		h.Dst, h.Src = c.cfg.Remote, c.cfg.Local
		h.Type, h.Call, h.Flags = protocol.Data, send.datatype.SendCall(), c.plainFlag|protocol.FlagEager
		h.Session, h.PeerSession = c.session.local, c.session.remote
		h.Message, h.Comm, h.Tag, h.Length = message.number, send.comm, send.tag, send.length
		f.markSent(send.sentAt, pkt)
	}
}

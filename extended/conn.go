package extended

import (
	"math"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// Conn is the state machine between a local rank and one peer. It is not safe for concurrent use. Every event appends
// its actions to the given slice and returns the extended slice, so that a caller that reuses it avoids allocation.
//
// The caller executes the actions of each event before it calls the next method, and calls Flush after an event or a
// batch of events. Packets are sent only by Flush.
//
// A Conn dispatches packets and timers to its parts, and builds packets from their state. The parts do not refer to
// each other.
type Conn struct {
	common
	random        random
	session       session        // our session and the peer's
	path          recovery       // our packets in flight, loss detection, window and MTU
	sends         sending        // messages to the peer, and its credit
	arrivals      arrivals       // the packets received, and when to acknowledge them
	recvs         receiving      // messages from the peer, and the limits sent to it
	reports       *reporting     // questions for reports (E53); nil before the first one
	timeoutChange *timeoutChange // a new UnreachableAfter that does not apply yet, or nil

	rxHeader       protocol.ExtHeader // header of the packet being handled
	nextDeadline   Instant
	deadlineValid  bool              // nextDeadline is valid, provided that changed is false
	plainFlag      protocol.ExtFlags // FlagPlain with HeaderChecksum
	foreignVersion byte              // version of the last packet with a foreign version, or 0
	peerGone       ending            // why a peer of our job is gone, or 0

	closed   bool // Close was called, at time closedAt
	closeDue bool // close must be sent to the peer again
	closedAt Instant
}

// New returns a Conn in its initial state: it has neither sent nor received anything.
func New(cfg Config) *Conn {
	cfg = cfg.withDefaults()
	conn := &Conn{common: common{cfg: cfg}, random: random(cfg.Seed)}
	if cfg.HeaderChecksum {
		conn.plainFlag = protocol.FlagPlain
	}
	if cfg.ShortHeaders {
		conn.path.shorts = new(shorts)
	}
	if cfg.CreditPool != nil {
		cfg.CreditPool.granted += cfg.Messages
	}
	conn.path.common, conn.sends.common, conn.recvs.common = &conn.common, &conn.common, &conn.common
	conn.session.local = conn.random.newSession(0)
	conn.reset()
	return conn
}

// Config returns the effective configuration, with defaults applied.
func (c *Conn) Config() Config { return c.cfg }

// Packet handles a packet from the peer. The parameter packet contains both the header and the payload.
func (c *Conn) Packet(now Instant, packet []byte, acts []Action) []Action {
	n := min(len(packet), protocol.ExtHeaderLen)
	return c.PacketParts(now, packet[:n], packet[n:], acts)
}

// PacketParts is like Packet, but takes the header and the payload separately.
func (c *Conn) PacketParts(now Instant, header, payload []byte, acts []Action) []Action {
	if !c.rxHeader.ParseParts(header, payload) {
		return c.onInvalidPacket(now, header, payload, acts)
	}
	return c.onValidPacket(now, payload, acts)
}

// onInvalidPacket handles a packet that is invalid or has another version.
func (c *Conn) onInvalidPacket(now Instant, header, payload []byte, acts []Action) []Action {
	c.acts, c.changed = acts, true
	_, defect := protocol.ParseExtendedParts(header, payload)
	c.drop(defectReason(defect), &protocol.ExtHeader{})
	if defect.Kind == protocol.DefectReserved && defect.Offset == protocol.VersionOffset {
		// Answer with a HELLO, so that the peer notices the mismatch as well, but no more often than HELLOs are
		// retransmitted (E5).
		c.foreignVersion = defect.Got
		c.session.helloNow = c.session.helloNow || now >= c.session.nextHello
	}
	return c.acts
}

// PacketChecked is like PacketParts, for a packet that the caller has already validated with
// protocol.ParseExtendedParts.
func (c *Conn) PacketChecked(now Instant, header, payload []byte, acts []Action) []Action {
	c.rxHeader.Decode((*[protocol.ExtHeaderLen]byte)(header))
	return c.onValidPacket(now, payload, acts)
}

// onValidPacket handles the parsed packet if it is from the peer and for this rank.
func (c *Conn) onValidPacket(now Instant, payload []byte, acts []Action) []Action {
	c.acts, c.changed = acts, true
	header := &c.rxHeader
	switch {
	case header.Src != c.cfg.Remote:
		c.drop(ReasonSourceRank, header)
	case header.Dst != c.cfg.Local:
		c.drop(ReasonDestination, header)
	default:
		c.onPeerPacket(now, header, payload)
	}
	return c.acts
}

// onPeerPacket handles a packet that passed all checks of E2 and comes from the peer's rank.
func (c *Conn) onPeerPacket(now Instant, header *protocol.ExtHeader, payload []byte) {
	c.path.stampShorts(now)
	c.stats.PacketsReceived[header.Type]++
	c.stats.BytesReceived[header.Type] += uint64(len(payload))
	sess := &c.session
	if (header.Session != sess.remote || header.PeerSession != sess.local || header.Session == 0) &&
		(c.closed || !c.identify(now, header)) {
		// a HELLO may name none
		if sess.answerTo != header.Session || header.Session == 0 || header.Flags&protocol.FlagHello == 0 {
			c.drop(ReasonSession, header)
		}
		return
	}
	if c.closed {
		c.onClosed(now, header)
		return
	}
	sess.lastPacketAt, sess.unansweredHellos = now, 0
	if int32(header.Acknowledged-c.path.nextNumber()) > 0 {
		c.drop(ReasonAcknowledged, header)
		return
	}
	if header.Type == protocol.Ack {
		if header.Flags&protocol.FlagHello != 0 && header.Offset != 0 {
			c.onProbe(header, payload)
			c.processAck(now, header.Acknowledged, nil, 0)
			return
		}
		if _, ok := header.Report(); ok {
			c.processAck(now, header.Acknowledged, nil, 0)
			c.reports.onReport(&c.common, header, payload)
			return
		}
		c.onAck(now, header, payload)
		return
	}
	c.processAck(now, header.Acknowledged, nil, 0)
	if !header.IsNumbered() {
		c.onClose(now)
		return
	}
	c.onNumbered(now, header, payload)
}

// onNumbered handles a numbered packet. An invalid packet is not acknowledged, so that the peer notices the fault.
func (c *Conn) onNumbered(now Instant, header *protocol.ExtHeader, payload []byte) {
	a := &c.arrivals
	if header.Flags&protocol.FlagRetransmit != 0 && header.Flags&protocol.FlagAckNow != 0 {
		a.needsFullAck = true // only an ACK informs the peer which transmission was received
	}
	if r := a.dropReason(header.Number); r != ReasonNone {
		a.ackNow = a.ackNow || r == ReasonDuplicate
		c.drop(r, header)
		return
	}
	expected := c.recvs.nextMessage
	r := c.deliver(now, header, payload)
	c.recvs.offered = false // applies to this packet only, not to packets released below
	if r != ReasonNone {
		c.drop(r, header)
		if r != ReasonStale {
			return
		}
	}
	before := a.firstMissing
	if a.record(now, header.Number, header.Clock, len(payload)) {
		a.ackNow = true
		c.stats.OutOfOrder++
	}
	if header.Flags&protocol.FlagAckNow != 0 || a.unackedPackets >= c.cfg.ackEvery() || a.unackedBytes >= ackBytes {
		a.ackNow = true
	}
	if len(c.recvs.heldPackets.packets) > 0 && (expected != c.recvs.nextMessage || before != a.firstMissing) {
		c.recvs.releaseHeld(now, before, a.firstMissing, a.end)
	}
}

// deliver handles a numbered packet received for the first time.
func (c *Conn) deliver(now Instant, header *protocol.ExtHeader, payload []byte) Reason {
	switch header.Type {
	case protocol.SendRequest:
		return c.recvs.onRequest(now, header, payload, c.arrivals.firstMissing)
	case protocol.Data:
		return c.recvs.onData(now, header, payload, c.arrivals.firstMissing)
	case protocol.ClearToSend:
		return c.sends.onClear(header)
	}
	switch header.Code() {
	case protocol.CodeCancel:
		return c.recvs.onCancel(header, c.arrivals.firstMissing)
	case protocol.CodeCanceled:
		return c.sends.onRefusal(now, header, ErrCanceled)
	case protocol.CodeTooLong:
		return c.sends.onRefusal(now, header, nil)
	case protocol.CodeAborted:
		return c.recvs.onAborted(header)
	}
	return ReasonCode
}

// Flush sends the packets that have become due since the last Flush, as far as window and credit allow. It sends at
// most one ACK, which covers all packets received.
func (c *Conn) Flush(now Instant, acts []Action) []Action {
	c.path.stampShorts(now)
	if !c.changed {
		if due, _ := c.Deadline(); now < due {
			return acts // nothing has changed since the last Flush
		}
	}
	c.acts, c.ackBuf = acts, c.ackBuf[:0]
	if c.closed {
		if c.closeDue && c.session.remote != 0 {
			c.sendClose()
		}
		c.changed, c.deadlineValid, c.closeDue = false, false, false
		return c.acts
	}
	if c.timeoutChange != nil {
		c.adoptUnreachableAfter()
	}
	numbered := c.path.flight.order
	if len(c.recvs.cancelRequests) > 0 {
		c.recvs.answerCancels()
	}
	if c.session.remote != 0 {
		if c.session.greetPeer && c.cfg.ShortHeaders {
			c.sendDueAck(now, false) // short headers carry only a digest of our session, so send it first
		}
		c.transmit(now)
		c.sendDueAck(now, c.path.flight.order != numbered)
	}
	c.sendDueHellos(now)
	if c.reports != nil {
		c.sendDueQuestion(now)
	}
	c.changed, c.deadlineValid = false, false
	if c.path.usesDiscovery() && c.session.remote != 0 {
		c.sendDueProbe(now)
	}
	return c.acts
}

// Tick handles all timers that have expired.
func (c *Conn) Tick(now Instant, acts []Action) []Action {
	if c.closed {
		return acts
	}
	c.acts, c.changed = acts, true
	c.path.stampShorts(now)
	r := &c.path
	if r.shorts.deadline(r.rtt.rto) <= now {
		c.convertShorts()
	}
	switch p := r.flight.oldest(); {
	case p == nil:
	case r.flight.isOvertaken(p) && now >= r.lossTime(p):
		r.detectLoss(now)
	case now < r.retransmitTime(p):
	case r.isUnreachable(now):
		c.declareUnreachable(now, endSilent)
	default:
		r.onTimeout(now, &c.random)
	}
	if now >= c.arrivals.ackDue(c.cfg.Timing.AckDelay) {
		c.arrivals.ackNow = true
	}
	return c.acts
}

// never is later than any time.
const never = Instant(math.MaxInt64)

// Deadline returns the time at which Tick and Flush are due, and false if no timer is set. Call it after Flush.
func (c *Conn) Deadline() (Instant, bool) {
	if c.changed || !c.deadlineValid {
		c.nextDeadline = c.deadline()
		c.deadlineValid = !c.changed && c.nextDeadline != 0 // 0 means that sent packets still lack a send time
	}
	return c.nextDeadline, c.nextDeadline != never
}

// deadline returns the earliest time at which a timer of any part expires, or never.
func (c *Conn) deadline() Instant {
	if c.closed {
		return never
	}
	known, r := c.session.remote != 0, &c.path
	at := min(c.helloDue(), c.arrivals.ackDue(c.cfg.Timing.AckDelay), c.reports.deadline(known),
		r.shorts.deadline(r.rtt.rto))
	if known {
		at = min(at, r.probeDue(c.session.lastPacketAt))
	}
	if r.pacer.waiting {
		at = min(at, r.pacer.resumeAt)
	}
	if p := r.flight.oldest(); p != nil {
		at = min(at, r.retransmitTime(p))
		if r.flight.isOvertaken(p) {
			at = min(at, r.lossTime(p))
		}
	}
	return at
}

// Reconnected informs a Conn with Config.Reliable that its transport has a new connection, and that all data in flight
// on the old one is lost (E41). The Conn asks the peer for its session, which differs if the peer was restarted.
func (c *Conn) Reconnected(now Instant, acts []Action) []Action {
	if !c.cfg.Reliable || c.closed {
		return acts
	}
	c.acts = acts
	c.path.stampShorts(now)
	c.convertShorts()
	f := &c.path.flight
	for n := f.base; n != f.nextNumber; n++ {
		if p := f.packetAt(n); p.state == packetSent {
			f.markLost(p)
		}
	}
	c.changed = true
	c.path.timerStart, c.path.lastAckAt, c.path.timeouts = now, now, 0
	c.session.nextHello, c.session.helloInterval, c.session.helloNow = now, c.cfg.Timing.HelloFirst, c.session.remote != 0
	return c.acts
}

// header returns the header of a packet from us to the peer.
func (c *Conn) header(t protocol.Type, call protocol.Call) protocol.ExtHeader {
	return protocol.ExtHeader{
		Dst: c.cfg.Remote, Src: c.cfg.Local, Type: t, Call: call, Flags: c.plainFlag,
		Session: c.session.local, PeerSession: c.session.remote, Acknowledged: c.arrivals.firstMissing,
	}
}

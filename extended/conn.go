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
	random   random
	session  session    // our session and the peer's
	path     recovery   // our packets in flight, loss detection, window and MTU
	sends    sending    // messages to the peer, and its credit
	arrivals arrivals   // the packets received, and when to acknowledge them
	recvs    receiving  // messages from the peer, and the limits sent to it
	reports  *reporting // questions about reports; nil before the first one
	renew    *renewal   // settings that do not apply yet, or nil

	parsing protocol.ExtHeader // header of the packet being handled
	due     Instant
	timed   bool              // due is still what Deadline must return, provided that changed is false
	plain   protocol.ExtFlags // FlagPlain with HeaderChecksum
	foreign byte              // version of the last packet that had another version, or 0
	left    ending            // why the peer, a rank of our job, is gone, or 0

	closed   bool // Close was called, at time closedAt
	closeDue bool // close must be sent to the peer again
	closedAt Instant
}

// New returns a Conn that has neither sent nor received anything.
func New(cfg Config) *Conn {
	cfg = cfg.complete()
	c := &Conn{common: common{cfg: cfg}, random: random(cfg.Seed)}
	if cfg.HeaderChecksum {
		c.plain = protocol.FlagPlain
	}
	if cfg.ShortHeaders {
		c.path.shorts = new(shorts)
	}
	if cfg.Room != nil {
		cfg.Room.granted += cfg.Messages
	}
	c.path.common, c.sends.common, c.recvs.common = &c.common, &c.common, &c.common
	c.session.local = c.random.session(0)
	c.reset()
	return c
}

// Config returns the effective configuration, with defaults applied.
func (c *Conn) Config() Config { return c.cfg }

// Packet handles a packet from the peer. packet holds the header and the payload.
func (c *Conn) Packet(now Instant, packet []byte, acts []Action) []Action {
	n := min(len(packet), protocol.ExtHeaderLen)
	return c.PacketParts(now, packet[:n], packet[n:], acts)
}

// PacketParts is like Packet, but takes the header and the payload separately.
func (c *Conn) PacketParts(now Instant, header, payload []byte, acts []Action) []Action {
	if !c.parsing.ParseParts(header, payload) {
		return c.defective(now, header, payload, acts)
	}
	return c.meant(now, payload, acts)
}

// defective handles a packet that is invalid or has another version.
func (c *Conn) defective(now Instant, header, payload []byte, acts []Action) []Action {
	c.acts, c.changed = acts, true
	_, defect := protocol.ParseExtendedParts(header, payload)
	c.drop(defectReason(defect), &protocol.ExtHeader{})
	if defect.Kind == protocol.DefectReserved && defect.Offset == protocol.VersionOffset {
		// Answer with a HELLO, so that the peer notices as well, but no more often than HELLOs are retransmitted (E5).
		c.foreign = defect.Got
		c.session.ask = c.session.ask || now >= c.session.hello
	}
	return c.acts
}

// Checked is like PacketParts, but the caller has already found the packet valid by protocol.ParseExtendedParts.
func (c *Conn) Checked(now Instant, header, payload []byte, acts []Action) []Action {
	c.parsing.Decode((*[protocol.ExtHeaderLen]byte)(header))
	return c.meant(now, payload, acts)
}

// meant handles the parsed packet if it is from the peer and for this rank.
func (c *Conn) meant(now Instant, payload []byte, acts []Action) []Action {
	c.acts, c.changed = acts, true
	h := &c.parsing
	switch {
	case h.Src != c.cfg.Remote:
		c.drop(ReasonSourceRank, h)
	case h.Dst != c.cfg.Local:
		c.drop(ReasonDestination, h)
	default:
		c.parsed(now, h, payload)
	}
	return c.acts
}

// parsed handles a packet that passed all checks of E2, including the check of the ranks.
func (c *Conn) parsed(now Instant, h *protocol.ExtHeader, payload []byte) {
	c.path.timeShorts(now)
	c.stats.PacketsReceived[h.Type]++
	c.stats.BytesReceived[h.Type] += uint64(len(payload))
	s := &c.session
	if (h.Session != s.remote || h.PeerSession != s.local || h.Session == 0) && (c.closed || !c.identify(now, h)) {
		if s.answer != h.Session || h.Session == 0 || h.Flags&protocol.FlagHello == 0 { // a HELLO may name none
			c.drop(ReasonSession, h)
		}
		return
	}
	if c.closed {
		c.onClosed(now, h)
		return
	}
	s.lastHeardAt, s.unansweredHellos = now, 0
	if int32(h.Acknowledged-c.path.unused()) > 0 {
		c.drop(ReasonAcknowledged, h)
		return
	}
	if h.Type == protocol.Ack {
		if h.Flags&protocol.FlagHello != 0 && h.Offset != 0 {
			c.onProbe(h, payload)
			c.acknowledged(now, h.Acknowledged, nil, 0)
			return
		}
		if _, ok := h.Report(); ok {
			c.acknowledged(now, h.Acknowledged, nil, 0)
			c.reports.onReport(&c.common, h, payload)
			return
		}
		c.onAck(now, h, payload)
		return
	}
	c.acknowledged(now, h.Acknowledged, nil, 0)
	if !h.Numbered() {
		c.onClose(now)
		return
	}
	c.onNumbered(now, h, payload)
}

// onNumbered handles a numbered packet. An invalid packet is not acknowledged, so that the peer notices the fault.
func (c *Conn) onNumbered(now Instant, h *protocol.ExtHeader, payload []byte) {
	a := &c.arrivals
	if h.Flags&protocol.FlagRetransmit != 0 && h.Flags&protocol.FlagAckNow != 0 {
		a.full = true // only an ACK shows which transmission was received
	}
	if r := a.check(h.Number); r != ReasonNone {
		a.now = a.now || r == ReasonDuplicate
		c.drop(r, h)
		return
	}
	expected := c.recvs.expected
	r := c.deliver(now, h, payload)
	c.recvs.offered = false // does not apply to the packets released below
	if r != ReasonNone {
		c.drop(r, h)
		if r != ReasonStale {
			return
		}
	}
	before := a.next
	if a.take(now, h.Number, h.Clock, len(payload)) {
		a.now = true
		c.stats.OutOfOrder++
	}
	if h.Flags&protocol.FlagAckNow != 0 || a.unacknowledged >= c.cfg.ackEvery() || a.bytes >= ackBytes {
		a.now = true
	}
	if len(c.recvs.held.packets) > 0 && (expected != c.recvs.expected || before != a.next) {
		c.recvs.release(now, before, a.next, a.end)
	}
}

// deliver handles a numbered packet received for the first time.
func (c *Conn) deliver(now Instant, h *protocol.ExtHeader, payload []byte) Reason {
	switch h.Type {
	case protocol.SendRequest:
		return c.recvs.onRequest(now, h, payload, c.arrivals.next)
	case protocol.Data:
		return c.recvs.onData(now, h, payload, c.arrivals.next)
	case protocol.ClearToSend:
		return c.sends.onClear(h)
	}
	switch h.Code() {
	case protocol.CodeCancel:
		return c.recvs.onCancel(h, c.arrivals.next)
	case protocol.CodeCanceled:
		return c.sends.onRefusal(now, h, ErrCanceled)
	case protocol.CodeTooLong:
		return c.sends.onRefusal(now, h, nil)
	case protocol.CodeAborted:
		return c.recvs.onAborted(h)
	}
	return ReasonCode
}

// Flush sends the packets that have become due since the last Flush, as far as window and credit allow, and at most one
// ACK, which covers all packets received.
func (c *Conn) Flush(now Instant, acts []Action) []Action {
	c.path.timeShorts(now)
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
		c.changed, c.timed, c.closeDue = false, false, false
		return c.acts
	}
	if c.renew != nil {
		c.adoptUnreachableAfter()
	}
	numbered := c.path.flight.order
	if len(c.recvs.asked) > 0 {
		c.recvs.forget()
	}
	if c.session.remote != 0 {
		if c.session.greet && c.cfg.ShortHeaders {
			c.ack(now, false) // short headers carry only a digest of our session, so send it first
		}
		c.transmit(now)
		c.ack(now, c.path.flight.order != numbered)
	}
	c.sendHello(now)
	if c.reports != nil {
		c.ask(now)
	}
	c.changed, c.timed = false, false
	if c.path.discovers() && c.session.remote != 0 {
		c.probe(now)
	}
	return c.acts
}

// Tick handles all timers that have expired.
func (c *Conn) Tick(now Instant, acts []Action) []Action {
	if c.closed {
		return acts
	}
	c.acts, c.changed = acts, true
	c.path.timeShorts(now)
	r := &c.path
	if r.shorts.due(r.trip.rto) <= now {
		c.lengthen()
	}
	switch p := r.flight.oldest(); {
	case p == nil:
	case r.flight.overtaken(p) && now >= r.overtakenUntil(p):
		r.detectLoss(now)
	case now < r.retransmission(p):
	case r.unreachable(now):
		c.declareUnreachable(now, endSilent)
	default:
		r.timedOut(now, &c.random)
	}
	if now >= c.arrivals.due(c.cfg.Timing.AckDelay) {
		c.arrivals.now = true
	}
	return c.acts
}

// never is later than any time.
const never = Instant(math.MaxInt64)

// Deadline returns the time at which Tick and Flush are due, and false if no timer is set. Call it after Flush.
func (c *Conn) Deadline() (Instant, bool) {
	if c.changed || !c.timed {
		c.due = c.deadline()
		c.timed = !c.changed && c.due != 0 // 0 means that sent packets still lack a send time
	}
	return c.due, c.due != never
}

func (c *Conn) deadline() Instant {
	if c.closed {
		return never
	}
	known, r := c.session.remote != 0, &c.path
	at := min(c.helloDue(), c.arrivals.due(c.cfg.Timing.AckDelay), c.reports.due(known), r.shorts.due(r.trip.rto))
	if known {
		at = min(at, r.probeDue(c.session.lastHeardAt))
	}
	if r.pace.held {
		at = min(at, r.pace.resume)
	}
	if p := r.flight.oldest(); p != nil {
		at = min(at, r.retransmission(p))
		if r.flight.overtaken(p) {
			at = min(at, r.overtakenUntil(p))
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
	c.path.timeShorts(now)
	c.lengthen()
	f := &c.path.flight
	for n := f.base; n != f.next; n++ {
		if p := f.at(n); p.state == packetSent {
			f.lose(p)
		}
	}
	c.changed = true
	c.path.timer, c.path.moved, c.path.stalled = now, now, 0
	c.session.hello, c.session.wait, c.session.ask = now, c.cfg.Timing.HelloFirst, c.session.remote != 0
	return c.acts
}

// header returns the header of a packet from us to the peer.
func (c *Conn) header(t protocol.Type, call protocol.Call) protocol.ExtHeader {
	return protocol.ExtHeader{
		Dst: c.cfg.Remote, Src: c.cfg.Local, Type: t, Call: call, Flags: c.plain,
		Session: c.session.local, PeerSession: c.session.remote, Acknowledged: c.arrivals.next,
	}
}

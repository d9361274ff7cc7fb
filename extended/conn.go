package extended

import (
	"math"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// Conn is the state machine between a local rank and one peer. It is not safe for concurrent use. Every event appends
// its actions to the given slice and returns the extended slice, so that a caller that reuses it avoids allocation.
//
// Packets are sent by Flush, which the caller calls after an event or a batch of events. It executes the actions of
// each event before it feeds the next one.
//
// A Conn dispatches packets and timers to its parts, and builds packets from their state. Each part has its own rules,
// and refers to no other part.
type Conn struct {
	common
	random   random
	session  session    // the sessions of both sides
	path     recovery   // packets in flight, losses, window and MTU
	sends    sending    // messages to the peer, and its credit
	arrivals arrivals   // numbers of the peer's packets, and when to acknowledge them
	recvs    receiving  // messages of the peer, and its limits
	reports  *reporting // questions for reports; nil before the first one
	renew    *renewal   // settings not yet in force, or nil

	parsing protocol.ExtHeader // header of the packet being handled
	due     Instant
	timed   bool              // due is valid for Deadline as long as nothing has changed
	plain   protocol.ExtFlags // FlagPlain with HeaderChecksum
	foreign byte              // version of the last packet of another version, or 0
	left    ending            // why a peer of our job is gone, or 0

	closed   bool // by Close, at time closedAt
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

// Packet handles a whole packet from the peer, header and payload.
func (c *Conn) Packet(now Instant, packet []byte, acts []Action) []Action {
	n := min(len(packet), protocol.ExtHeaderLen)
	return c.PacketParts(now, packet[:n], packet[n:], acts)
}

// PacketParts is Packet for a packet in two pieces, header and payload.
func (c *Conn) PacketParts(now Instant, header, payload []byte, acts []Action) []Action {
	if !c.parsing.ParseParts(header, payload) {
		return c.defective(now, header, payload, acts)
	}
	return c.meant(now, payload, acts)
}

// defective handles a packet that is invalid, or of another version.
func (c *Conn) defective(now Instant, header, payload []byte, acts []Action) []Action {
	c.acts, c.changed = acts, true
	_, defect := protocol.ParseExtendedParts(header, payload)
	c.drop(defectReason(defect), &protocol.ExtHeader{})
	if defect.Kind == protocol.DefectReserved && defect.Offset == protocol.VersionOffset {
		// Answer by a HELLO, at most as often as HELLOs are retransmitted, so that the peer notices as well (E5).
		c.foreign = defect.Got
		c.session.ask = c.session.ask || now >= c.session.hello
	}
	return c.acts
}

// Checked is PacketParts for a packet in which protocol.ParseExtendedParts found no defect.
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

// parsed handles a packet that passed all checks of E2, ranks included.
func (c *Conn) parsed(now Instant, h *protocol.ExtHeader, payload []byte) {
	c.path.timeShorts(now)
	c.stats.PacketsReceived[h.Type]++
	c.stats.BytesReceived[h.Type] += uint64(len(payload))
	s := &c.session
	if (h.Session != s.remote || h.PeerSession != s.local || h.Session == 0) && (c.closed || !c.identify(now, h)) {
		if s.answer != h.Session || h.Session == 0 || h.Flags&protocol.FlagHello == 0 { // what a HELLO is for
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

// onNumbered handles a packet that has a number. An invalid one is not acknowledged, so that the peer notices.
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
	c.recvs.offered = false // packets released below were not
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

// deliver handles a numbered packet that was not received before.
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

// Flush sends the packets that the events since the last Flush call for, as far as window and credit allow, and one ACK
// for all packets received.
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
			c.ack(now, false) // a short header has only a digest of our session, which the peer has to know first
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
		c.timed = !c.changed && c.due != 0 // 0: packets sent at an unknown time need a time
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

// Reconnected informs a Conn on a Reliable transport that all data in flight on the connection is lost (E41). It asks
// the peer for its session, which has changed if the peer was restarted.
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

package extended

import (
	"math"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// Conn is the state between a local rank and one peer. It is not safe for
// concurrent use. Every event appends its actions to the slice it is given and
// returns it, so that a caller that reuses the slice allocates nothing.
//
// Packets go out with Flush, which the caller calls after one event or a batch
// of them. It carries out the actions of each event before it feeds the next.
//
// A Conn dispatches packets and times to its parts and builds packets from their state. Each part has its own rules,
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
	renew    *renewal   // nil if all that there is goes by cfg

	parsing protocol.ExtHeader // of the packet that is examined
	due     Instant
	timed   bool              // due is what Deadline would return if nothing has changed
	plain   protocol.ExtFlags // FlagPlain with HeaderChecksum
	foreign byte              // version of the last packet of another version, or 0
	left    ending            // why a peer of our job has ended; 0: it has not

	closed   bool // by Close, at closedAt
	closeDue bool // the peer is to be sent close again
	closedAt Instant
}

// New returns the state before anything has been sent or received.
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

// Config returns what the Conn goes by, defaults included.
func (c *Conn) Config() Config { return c.cfg }

// Packet takes a whole packet, header and payload, that came from the peer.
func (c *Conn) Packet(now Instant, packet []byte, acts []Action) []Action {
	n := min(len(packet), protocol.ExtHeaderLen)
	return c.PacketParts(now, packet[:n], packet[n:], acts)
}

// PacketParts is Packet in two pieces, of which the first is the header.
func (c *Conn) PacketParts(now Instant, header, payload []byte, acts []Action) []Action {
	if !c.parsing.ParseParts(header, payload) {
		return c.defective(now, header, payload, acts)
	}
	return c.meant(now, payload, acts)
}

// defective takes a packet that is none of the profile, or of another version.
func (c *Conn) defective(now Instant, header, payload []byte, acts []Action) []Action {
	c.acts, c.changed = acts, true
	_, defect := protocol.ParseExtendedParts(header, payload)
	c.drop(defectReason(defect), &protocol.ExtHeader{})
	if defect.Kind == protocol.DefectReserved && defect.Offset == protocol.VersionOffset {
		// So that the peer notices as well, it is answered by a HELLO, as often as these may be retransmitted (E5).
		c.foreign = defect.Got
		c.session.ask = c.session.ask || now >= c.session.hello
	}
	return c.acts
}

// Checked is PacketParts for a packet that protocol.ParseExtendedParts has no fault with.
func (c *Conn) Checked(now Instant, header, payload []byte, acts []Action) []Action {
	c.parsing.Decode((*[protocol.ExtHeaderLen]byte)(header))
	return c.meant(now, payload, acts)
}

// meant takes the packet that was parsed, if it is from the peer and for us.
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

// parsed takes a packet that E2 has no fault with, up to the ranks.
func (c *Conn) parsed(now Instant, h *protocol.ExtHeader, payload []byte) {
	c.path.timeShorts(now)
	c.stats.PacketsReceived[h.Type]++
	c.stats.BytesReceived[h.Type] += uint64(len(payload))
	s := &c.session
	if (h.Session != s.remote || h.PeerSession != s.local || h.Session == 0) && (c.closed || !c.identify(now, h)) {
		if s.answer != h.Session || h.Session == 0 || h.Flags&protocol.FlagHello == 0 { // that is what a HELLO is for
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

// onNumbered takes a packet that bears a number. One that is invalid is not
// acknowledged, so that the peer notices.
func (c *Conn) onNumbered(now Instant, h *protocol.ExtHeader, payload []byte) {
	a := &c.arrivals
	if h.Flags&protocol.FlagRetransmit != 0 && h.Flags&protocol.FlagAckNow != 0 {
		a.full = true // only an ACK shows which transmission has arrived
	}
	if r := a.check(h.Number); r != ReasonNone {
		a.now = a.now || r == ReasonDuplicate
		c.drop(r, h)
		return
	}
	expected := c.recvs.expected
	r := c.deliver(now, h, payload)
	c.recvs.offered = false // what is released below was not
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

// deliver acts on a numbered packet that has not arrived before.
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

// Flush sends what the events since the last one have given cause for: packets
// as far as window and credit allow, and one ACK for all that has arrived.
func (c *Conn) Flush(now Instant, acts []Action) []Action {
	c.path.timeShorts(now)
	if !c.changed {
		if due, _ := c.Deadline(); now < due {
			return acts // as it was at the end of the last Flush
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
			c.ack(now, false) // a short header has only a digest of our session, which the peer has to know
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

// Tick acts on every time that has been reached.
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

// Deadline returns the time by which Tick and Flush are to be called, and false if nothing
// waits for a time. It is to be asked after Flush.
func (c *Conn) Deadline() (Instant, bool) {
	if c.changed || !c.timed {
		c.due = c.deadline()
		c.timed = !c.changed && c.due != 0 // 0: what was sent at no known time is to have one
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

// Reconnected informs a Conn on a Reliable transport that whatever was under way
// on the connection is lost (E41). The peer is asked for its session, which is another one if
// it was restarted.
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

// header begins a packet of ours.
func (c *Conn) header(t protocol.Type, call protocol.Call) protocol.ExtHeader {
	return protocol.ExtHeader{
		Dst: c.cfg.Remote, Src: c.cfg.Local, Type: t, Call: call, Flags: c.plain,
		Session: c.session.local, PeerSession: c.session.remote, Acknowledged: c.arrivals.next,
	}
}

package extended

import (
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// due returns the time at which a delayed acknowledgement is due (E26), or never.
func (a *arrivals) due(delay time.Duration) Instant {
	if a.unacknowledged == 0 || a.now {
		return never
	}
	return a.since + delay
}

// ack sends an ACK to the peer if one is due. numbered reports whether a numbered packet was just sent, which
// acknowledges everything except gaps and credit. The peer's session must be known.
func (c *Conn) ack(now Instant, numbered bool) {
	a := &c.arrivals
	c.recvs.raiseFloor()
	credit := c.recvs.creditDue()
	switch {
	case numbered && !a.full && !credit && !a.gaps():
		a.advertised()
	case a.now || credit:
		a.advertised()
		c.sendAck(now)
	}
}

// sendAck sends an ACK. The first ACK to a session asks for an answer if the round-trip time is unknown, so that a
// first loss is detected sooner than by the initial time-out.
func (c *Conn) sendAck(now Instant) {
	greet := c.session.greet && !c.path.trip.known()
	c.session.greet = false
	if greet {
		c.hello(now)
		if c.arrivals.probe == 0 {
			return
		}
	}
	h := c.header(protocol.Ack, protocol.RecvInt)
	h.Clock, h.Offset, c.arrivals.probe = c.arrivals.clock, c.arrivals.probe, 0
	c.appendAck(now, &h)
}

// appendAck sends an ACK that reports all received packets and the current limits.
func (c *Conn) appendAck(now Instant, h *protocol.ExtHeader) {
	if c.arrivals.gaps() {
		c.needRanges()
	}
	c.ranges = c.arrivals.ranges(c.ranges[:0])
	info := protocol.AckInfo{Ranges: c.ranges}
	if h.Clock != 0 && h.Clock == c.arrivals.clock {
		info.Delay = now - c.arrivals.newest
	}
	info.MessageLimit, info.EagerLimit = c.recvs.limits()
	c.recvs.advertisedLimit, c.recvs.advertisedEager = info.MessageLimit, info.EagerLimit
	h.Length = c.arrivals.window
	c.transmitAck(h, &info)
}

// onAck handles an ACK from the known session.
func (c *Conn) onAck(now Instant, h *protocol.ExtHeader, payload []byte) {
	if len(payload) > protocol.AckLen {
		c.needRanges()
	}
	info, ok := protocol.ParseAck(payload, c.ranges)
	if !ok || h.Call != protocol.RecvInt {
		c.drop(ReasonAcknowledged, h)
		return
	}
	for _, r := range info.Ranges {
		if int32(r.End-c.path.flight.next) > 0 {
			c.drop(ReasonAcknowledged, h)
			return
		}
	}
	if n := int32(min(h.Length, maxWindow)); n > c.path.peerWindow {
		c.path.peerWindow = n
		c.path.adapt()
	}
	if h.Offset != 0 && c.path.search != nil && c.path.search.carried(int(min(h.Offset, protocol.MaxUDPDatagram))) {
		c.path.sized()
	}
	echo := h.Clock
	if _, ok := h.Question(); ok {
		c.needReports().onQuestion(&c.common, now, h)
		echo = 0
	} else if h.Flags&protocol.FlagHello != 0 {
		a := &c.arrivals
		a.now, a.full, a.newest, a.clock = true, true, now, h.Clock
		echo = 0
	}
	s := &c.sends
	// An ACK may overtake a newer one, but limits never shrink (E20).
	if int32(info.MessageLimit-s.limit) > 0 {
		if s.grant == 0 {
			s.grant = info.MessageLimit - c.cfg.firstMessage
		}
		s.limit = info.MessageLimit
		c.session.wait = c.cfg.Timing.HelloFirst
	}
	if int32(info.EagerLimit-s.eagerLimit) > 0 {
		s.eagerLimit = info.EagerLimit
	}
	c.acknowledged(now, h.Acknowledged, &info, echo)
	c.reports.onEcho(&c.common, echo)
	if trip := tripOf(now, echo, info.Delay); trip > 0 {
		if int32(h.Acknowledged-c.path.flight.began) > 0 {
			s.confirmed = max(s.confirmed, now-trip)
		}
		if !c.path.trip.known() {
			c.path.measured(trip, 0)
		}
		if c.path.suspect.clock != 0 && covers(h.Acknowledged, info.Ranges, c.path.suspect.number) {
			c.path.judge(echo, trip)
		}
	}
}

// covers reports whether an ACK acknowledges the packet with the given number: all packets before upTo, and those in
// ranges.
func covers(upTo uint32, ranges []protocol.Range, number uint32) bool {
	return int32(upTo-number) > 0 ||
		slices.ContainsFunc(ranges, func(r protocol.Range) bool { return number-r.First < r.End-r.First })
}

// ackUpdate accumulates what an acknowledgement shows, over all packets that it newly acknowledges.
type ackUpdate struct {
	now   Instant
	count int
	// echo is the clock of the transmission that the peer received last, or 0 if unknown.
	echo uint32
	// order and sent describe the newly acknowledged transmission with the highest order.
	order uint64
	sent  Instant
	once  bool // that was the only transmission of its packet
}

// acknowledged handles a cumulative acknowledgement. info is the payload of the ACK that contains it, or nil if it came
// with another packet. echo is the clock of the transmission that the peer received last, or 0 if unknown.
func (c *Conn) acknowledged(now Instant, upTo uint32, info *protocol.AckInfo, echo uint32) {
	f := &c.path.flight
	if n := upTo - f.next; int32(n) > 0 {
		upTo = f.next
		defer c.path.shortsAcked(now, n)
	}
	if upTo == f.base && (info == nil || len(info.Ranges) == 0) {
		return // the common case while data flows in the other direction
	}
	used := c.path.limited || 2*f.count >= c.path.cwnd() && c.path.window.slowStart()
	l := ackUpdate{now: now, echo: echo}
	for int32(upTo-f.base) > 0 {
		if p := f.at(f.base); p.state != packetAcked {
			c.onAcked(p, &l)
		} else {
			f.passed()
		}
		f.base++
	}
	if info != nil {
		for _, r := range info.Ranges {
			for n := f.unacked(later(r.First, f.base), r.End); int32(r.End-n) > 0; n = f.unacked(n, r.End) {
				c.onAcked(f.at(n), &l)
				f.ackedBeyond(n)
			}
		}
	}
	if l.count == 0 {
		return
	}
	// A range may begin at the first unacknowledged packet, although no correct peer sends one.
	for f.base != f.next && f.at(f.base).state == packetAcked {
		f.passed()
		f.base++
	}
	c.path.moved, c.path.timer, c.path.stalled = now, now, 0
	switch {
	case l.once:
		d := now - l.sent
		if info != nil && info.Delay < d {
			d -= info.Delay
		}
		c.path.measured(d, l.order)
	case info != nil:
		if d := tripOf(now, echo, info.Delay); d > 0 {
			c.path.measured(d, l.order)
			f.newestSent = max(f.newestSent, now-d-info.Delay)
		}
	}
	if w := &c.path.window; !used {
		w.unused(now)
	} else if !c.cfg.ShortHeaders {
		w.acked(now, l.count, l.order, c.path.trip.smoothed, c.path.most)
	}
	if f.count > 0 {
		c.path.detectLoss(now)
	}
}

// onAcked handles the acknowledgement of a packet.
func (c *Conn) onAcked(p *packet, l *ackUpdate) {
	f := &c.path.flight
	l.count++
	if p.state == packetSent && p.retransmissions == 0 { // the common case
		p.state = packetAcked
		f.count--
		f.bytes -= p.carried()
	} else {
		if p.state == packetLost || l.now-p.sent < c.path.trip.least {
			c.path.late(p)
		}
		f.acked(p)
	}
	// If the packet was retransmitted, the peer may have received an earlier transmission.
	if p.retransmissions == 0 || clockAt(p.sent) == l.echo {
		f.newestSent, f.newest = max(f.newestSent, p.sent), max(f.newest, p.order)
		if c.path.search != nil {
			c.path.arrivedLong(p)
		}
	}
	if p.order > l.order {
		l.order, l.sent, l.once = p.order, p.sent, p.retransmissions == 0
	}
	if m := p.message; m != nil {
		p.message = nil
		m.flying--
		m.acked += int64(p.payload)
		c.sends.doneIfAcked(m)
	}
}

// later returns the later of two packet numbers (E4).
func later(a, b uint32) uint32 {
	if int32(a-b) > 0 {
		return a
	}
	return b
}

package extended

import (
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// due returns the time at which a delayed acknowledgement is due (E26), or never.
func (a *arrivals) ackDue(delay time.Duration) Instant {
	if a.unackedPackets == 0 || a.ackNow {
		return never
	}
	return a.unackedSince + delay
}

// sendDueAck sends an ACK to the peer if one is due. numbered reports whether a numbered packet was just sent, which
// acknowledges everything except gaps and credit. The peer's session must be known.
func (c *Conn) sendDueAck(now Instant, numbered bool) {
	a := &c.arrivals
	c.recvs.raiseFloor()
	credit := c.recvs.creditDue()
	switch {
	case numbered && !a.needsFullAck && !credit && !a.hasGaps():
		a.clearUnacked()
	case a.ackNow || credit:
		a.clearUnacked()
		c.sendAck(now)
	}
}

// sendAck sends an ACK. The first ACK to a session asks for an answer if the round-trip time is unknown, so that a
// first loss is detected sooner than by the initial time-out.
func (c *Conn) sendAck(now Instant) {
	greet := c.session.greetPeer && !c.path.rtt.isMeasured()
	c.session.greetPeer = false
	if greet {
		c.transmitHello(now)
		if c.arrivals.probeLen == 0 {
			return
		}
	}
	h := c.header(protocol.Ack, protocol.RecvInt)
	h.Clock, h.Offset, c.arrivals.probeLen = c.arrivals.peerClock, c.arrivals.probeLen, 0
	c.appendAck(now, &h)
}

// appendAck sends an ACK that reports all received packets and the current limits.
func (c *Conn) appendAck(now Instant, h *protocol.ExtHeader) {
	if c.arrivals.hasGaps() {
		c.ensureRanges()
	}
	c.ranges = c.arrivals.appendRanges(c.ranges[:0])
	info := protocol.AckInfo{Ranges: c.ranges}
	if h.Clock != 0 && h.Clock == c.arrivals.peerClock {
		info.Delay = now - c.arrivals.newestAt
	}
	info.MessageLimit, info.EagerLimit = c.recvs.limits()
	c.recvs.advertisedLimit, c.recvs.advertisedEager = info.MessageLimit, info.EagerLimit
	h.Length = c.arrivals.window
	c.transmitAck(h, &info)
}

// onAck handles an ACK from the known session.
func (c *Conn) onAck(now Instant, h *protocol.ExtHeader, payload []byte) {
	if len(payload) > protocol.AckLen {
		c.ensureRanges()
	}
	info, ok := protocol.ParseAck(payload, c.ranges)
	if !ok || h.Call != protocol.RecvInt {
		c.drop(ReasonAcknowledged, h)
		return
	}
	for _, r := range info.Ranges {
		if int32(r.End-c.path.flight.nextNumber) > 0 {
			c.drop(ReasonAcknowledged, h)
			return
		}
	}
	if n := int32(min(h.Length, maxWindow)); n > c.path.peerWindow {
		c.path.peerWindow = n
		c.path.adaptLimits()
	}
	if h.Offset != 0 && c.path.search != nil && c.path.search.confirm(int(min(h.Offset, protocol.MaxUDPDatagram))) {
		c.path.applySize()
	}
	echo := h.Clock
	if _, ok := h.Question(); ok {
		c.ensureReports().onQuestion(&c.common, now, h)
		echo = 0
	} else if h.Flags&protocol.FlagHello != 0 {
		a := &c.arrivals
		a.ackNow, a.needsFullAck, a.newestAt, a.peerClock = true, true, now, h.Clock
		echo = 0
	}
	s := &c.sends
	// An ACK may overtake a newer one, but limits never shrink (E20).
	if int32(info.MessageLimit-s.messageLimit) > 0 {
		if s.initialCredit == 0 {
			s.initialCredit = info.MessageLimit - c.cfg.firstMessage
		}
		s.messageLimit = info.MessageLimit
		c.session.helloInterval = c.cfg.Timing.HelloFirst
	}
	if int32(info.EagerLimit-s.eagerLimit) > 0 {
		s.eagerLimit = info.EagerLimit
	}
	c.processAck(now, h.Acknowledged, &info, echo)
	c.reports.onEcho(&c.common, echo)
	if trip := echoRTT(now, echo, info.Delay); trip > 0 {
		if int32(h.Acknowledged-c.path.flight.lastBegun) > 0 {
			s.confirmedAt = max(s.confirmedAt, now-trip)
		}
		if !c.path.rtt.isMeasured() {
			c.path.onRTTSample(trip, 0)
		}
		if c.path.suspect.clock != 0 && covers(h.Acknowledged, info.Ranges, c.path.suspect.number) {
			c.path.judgeSuspect(echo, trip)
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
	now          Instant
	packetsAcked int
	// echoClock is the clock of the transmission that the peer received last, or 0 if unknown.
	echoClock uint32
	// order and sent describe the newly acknowledged transmission with the highest order.
	order    uint64
	sentAt   Instant
	sentOnce bool // that was the only transmission of its packet
}

// processAck handles a cumulative acknowledgement. info is the payload of the ACK that contains it, or nil if it came
// with another packet. echo is the clock of the transmission that the peer received last, or 0 if unknown.
func (c *Conn) processAck(now Instant, upTo uint32, info *protocol.AckInfo, echo uint32) {
	f := &c.path.flight
	if n := upTo - f.nextNumber; int32(n) > 0 {
		upTo = f.nextNumber
		defer c.path.onShortsAcked(now, n)
	}
	if upTo == f.base && (info == nil || len(info.Ranges) == 0) {
		return // the common case while data flows in the other direction
	}
	used := c.path.windowLimited || 2*f.count >= c.path.cwnd() && c.path.window.slowStart()
	l := ackUpdate{now: now, echoClock: echo}
	for int32(upTo-f.base) > 0 {
		if p := f.packetAt(f.base); p.state != packetAcked {
			c.onPacketAcked(p, &l)
		} else {
			f.clearAckedBit()
		}
		f.base++
	}
	if info != nil {
		for _, r := range info.Ranges {
			for n := f.nextUnacked(later(r.First, f.base), r.End); int32(r.End-n) > 0; n = f.nextUnacked(n, r.End) {
				c.onPacketAcked(f.packetAt(n), &l)
				f.setAckedBit(n)
			}
		}
	}
	if l.packetsAcked == 0 {
		return
	}
	// A range may begin at the first unacknowledged packet, although no correct peer sends one.
	for f.base != f.nextNumber && f.packetAt(f.base).state == packetAcked {
		f.clearAckedBit()
		f.base++
	}
	c.path.lastAckAt, c.path.timerStart, c.path.timeouts = now, now, 0
	switch {
	case l.sentOnce:
		d := now - l.sentAt
		if info != nil && info.Delay < d {
			d -= info.Delay
		}
		c.path.onRTTSample(d, l.order)
	case info != nil:
		if d := echoRTT(now, echo, info.Delay); d > 0 {
			c.path.onRTTSample(d, l.order)
			f.newestSent = max(f.newestSent, now-d-info.Delay)
		}
	}
	if w := &c.path.window; !used {
		w.onUnusedAck(now)
	} else if !c.cfg.ShortHeaders {
		w.onAcked(now, l.packetsAcked, l.order, c.path.rtt.smoothed, c.path.maxInFlight)
	}
	if f.count > 0 {
		c.path.detectLoss(now)
	}
}

// removeInFlight handles the acknowledgement of a packet.
func (c *Conn) onPacketAcked(p *packet, l *ackUpdate) {
	f := &c.path.flight
	l.packetsAcked++
	if p.state == packetSent && p.retransmissions == 0 { // the common case
		p.state = packetAcked
		f.count--
		f.bytes -= p.bytesInFlight()
	} else {
		if p.state == packetLost || l.now-p.sentAt < c.path.rtt.minRTT {
			c.path.onLatePacket(p)
		}
		f.markAcked(p)
	}
	// If the packet was retransmitted, the peer may have received an earlier transmission.
	if p.retransmissions == 0 || clockAt(p.sentAt) == l.echoClock {
		f.newestSent, f.highestAcked = max(f.newestSent, p.sentAt), max(f.highestAcked, p.order)
		if c.path.search != nil {
			c.path.onLongAcked(p)
		}
	}
	if p.order > l.order {
		l.order, l.sentAt, l.sentOnce = p.order, p.sentAt, p.retransmissions == 0
	}
	if m := p.message; m != nil {
		p.message = nil
		m.unackedPackets--
		m.bytesAcked += int64(p.payload)
		c.sends.finishIfAcked(m)
	}
}

// later returns the later of two packet numbers (E4).
func later(a, b uint32) uint32 {
	if int32(a-b) > 0 {
		return a
	}
	return b
}

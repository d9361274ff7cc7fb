package extended

import (
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// ackDue returns the time at which the delayed acknowledgement must be sent (E26), or never if none is pending.
func (a *arrivals) ackDue(delay time.Duration) Instant {
	if a.unackedPackets == 0 || a.ackNow {
		return never
	}
	return a.unackedSince + delay
}

// sendDueAck sends an ACK if one is due. numbered reports whether Flush has just sent a numbered packet. Such a packet
// acknowledges all packets up to the first gap, so a separate ACK is needed only to report gaps or credit, or if
// needsFullAck is set. The peer's session must be known.
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

// sendAck sends an ACK. If no round-trip time has been measured yet, the first ACK to a session is sent as a HELLO,
// because the answer to a HELLO provides a measurement. A first loss is then detected sooner than after the initial
// timeout.
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
func (c *Conn) appendAck(now Instant, header *protocol.ExtHeader) {
	if c.arrivals.hasGaps() {
		c.ensureRanges()
	}
	c.ranges = c.arrivals.appendRanges(c.ranges[:0])
	info := protocol.AckInfo{Ranges: c.ranges}
	if header.Clock != 0 && header.Clock == c.arrivals.peerClock {
		info.Delay = now - c.arrivals.newestAt
	}
	info.MessageLimit, info.EagerLimit = c.recvs.limits()
	c.recvs.advertisedLimit, c.recvs.advertisedEager = info.MessageLimit, info.EagerLimit
	header.Length = c.arrivals.window
	c.transmitAck(header, &info)
}

// onAck handles an ACK from the peer's current session.
func (c *Conn) onAck(now Instant, header *protocol.ExtHeader, payload []byte) {
	if len(payload) > protocol.AckLen {
		c.ensureRanges()
	}
	info, ok := protocol.ParseAck(payload, c.ranges)
	if !ok || header.Call != protocol.RecvInt {
		c.drop(ReasonAcknowledged, header)
		return
	}
	for _, r := range info.Ranges {
		if int32(r.End-c.path.flight.nextNumber) > 0 {
			c.drop(ReasonAcknowledged, header)
			return
		}
	}
	if n := int32(min(header.Length, maxWindow)); n > c.path.peerWindow {
		c.path.peerWindow = n
		c.path.adaptLimits()
	}
	if header.Offset != 0 && c.path.search != nil &&
		c.path.search.confirm(int(min(header.Offset, protocol.MaxUDPDatagram))) {
		c.path.applySize()
	}
	echo := header.Clock
	if _, ok := header.Question(); ok {
		c.ensureReports().onQuestion(&c.common, now, header)
		echo = 0
	} else if header.Flags&protocol.FlagHello != 0 {
		a := &c.arrivals
		a.ackNow, a.needsFullAck, a.newestAt, a.peerClock = true, true, now, header.Clock
		echo = 0
	}
	send := &c.sends
	// An ACK may overtake a newer one, but limits never shrink (E20).
	if int32(info.MessageLimit-send.messageLimit) > 0 {
		if send.initialCredit == 0 {
			send.initialCredit = info.MessageLimit - c.cfg.firstMessage
		}
		send.messageLimit = info.MessageLimit
		c.session.helloInterval = c.cfg.Timing.HelloFirst
	}
	if int32(info.EagerLimit-send.eagerLimit) > 0 {
		send.eagerLimit = info.EagerLimit
	}
	c.processAck(now, header.Acknowledged, &info, echo)
	c.reports.onEcho(&c.common, echo)
	if trip := echoRTT(now, echo, info.Delay); trip > 0 {
		if int32(header.Acknowledged-c.path.flight.lastBegun) > 0 {
			send.confirmedAt = max(send.confirmedAt, now-trip)
		}
		if !c.path.rtt.isMeasured() {
			c.path.onRTTSample(trip, 0)
		}
		if c.path.suspect.clock != 0 && covers(header.Acknowledged, info.Ranges, c.path.suspect.number) {
			c.path.judgeSuspect(echo, trip)
		}
	}
}

// covers reports whether an ACK acknowledges the packet with the given number, which is the case if the number precedes
// upTo or lies in one of ranges.
func covers(upTo uint32, ranges []protocol.Range, number uint32) bool {
	return int32(upTo-number) > 0 ||
		slices.ContainsFunc(ranges, func(r protocol.Range) bool { return number-r.First < r.End-r.First })
}

// ackUpdate accumulates the results of one acknowledgement over all packets that it newly acknowledges.
type ackUpdate struct {
	now          Instant
	packetsAcked int
	// echoClock is the clock value of the transmission that the peer received last, or 0 if unknown.
	echoClock uint32
	// order and sentAt describe the newly acknowledged transmission with the highest order.
	order    uint64
	sentAt   Instant
	sentOnce bool // the packet was transmitted only once
}

// processAck handles the acknowledgement of all packets before upTo. The parameter info is the payload of the ACK, or
// nil if another packet carried the acknowledgement. The parameter echo is the clock value of the transmission that the
// peer received last, or 0 if unknown.
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
	update := ackUpdate{now: now, echoClock: echo}
	for int32(upTo-f.base) > 0 {
		if p := f.packetAt(f.base); p.state != packetAcked {
			c.onPacketAcked(p, &update)
		} else {
			f.clearAckedBit()
		}
		f.base++
	}
	if info != nil {
		for _, r := range info.Ranges {
			for n := f.nextUnacked(later(r.First, f.base), r.End); int32(r.End-n) > 0; n = f.nextUnacked(n, r.End) {
				c.onPacketAcked(f.packetAt(n), &update)
				f.setAckedBit(n)
			}
		}
	}
	if update.packetsAcked == 0 {
		return
	}
	// An incorrect peer may send a range that begins at the first unacknowledged packet.
	for f.base != f.nextNumber && f.packetAt(f.base).state == packetAcked {
		f.clearAckedBit()
		f.base++
	}
	c.path.lastAckAt, c.path.timerStart, c.path.timeouts = now, now, 0
	switch {
	case update.sentOnce:
		d := now - update.sentAt
		if info != nil && info.Delay < d {
			d -= info.Delay
		}
		c.path.onRTTSample(d, update.order)
	case info != nil:
		if d := echoRTT(now, echo, info.Delay); d > 0 {
			c.path.onRTTSample(d, update.order)
			f.newestSent = max(f.newestSent, now-d-info.Delay)
		}
	}
	if w := &c.path.window; !used {
		w.onUnusedAck(now)
	} else if !c.cfg.ShortHeaders {
		w.onAcked(now, update.packetsAcked, update.order, c.path.rtt.smoothed, c.path.maxInFlight)
	}
	if f.count > 0 {
		c.path.detectLoss(now)
	}
}

// onPacketAcked handles the acknowledgement of a packet.
func (c *Conn) onPacketAcked(pkt *packet, update *ackUpdate) {
	f := &c.path.flight
	update.packetsAcked++
	if pkt.state == packetSent && pkt.retransmissions == 0 { // the common case
		pkt.state = packetAcked
		f.count--
		f.bytes -= pkt.bytesInFlight()
	} else {
		if pkt.state == packetLost || update.now-pkt.sentAt < c.path.rtt.minRTT {
			c.path.onLatePacket(pkt)
		}
		f.markAcked(pkt)
	}
	// For a retransmitted packet, only the echoed clock shows that the peer received the last transmission and not an
	// earlier one.
	if pkt.retransmissions == 0 || clockAt(pkt.sentAt) == update.echoClock {
		f.newestSent, f.highestAcked = max(f.newestSent, pkt.sentAt), max(f.highestAcked, pkt.order)
		if c.path.search != nil {
			c.path.onLongAcked(pkt)
		}
	}
	if pkt.order > update.order {
		update.order, update.sentAt, update.sentOnce = pkt.order, pkt.sentAt, pkt.retransmissions == 0
	}
	if m := pkt.message; m != nil {
		pkt.message = nil
		m.unackedPackets--
		m.bytesAcked += int64(pkt.payload)
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

package extended

import (
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// minStalls is how often a peer must have been asked in vain before it is given
// up: that a whole program was held up is no fault of its peer.
const minStalls = 3

// due returns when an acknowledgement is to be sent that can wait (E26), or never.
func (a *arrivals) due(delay time.Duration) Instant {
	if a.untold == 0 || a.now {
		return never
	}
	return a.since + delay
}

// ack tells the peer what has arrived, if it is time. A numbered packet that has
// just been sent has told it, but for gaps and credit. The session is known.
func (c *Conn) ack(now Instant, numbered bool) {
	a := &c.arrivals
	credit := c.recvs.creditDue(&c.cfg)
	switch {
	case numbered && !a.full && !credit && !a.gaps():
		a.told()
	case a.now || credit:
		a.told()
		c.sendAck(now)
	}
}

func (c *Conn) sendAck(now Instant) {
	c.appendAck(now, c.header(protocol.Ack, protocol.RecvInt), &c.ackBuf)
}

// appendAck sends an ACK with all that there is to be told.
func (c *Conn) appendAck(now Instant, h protocol.ExtHeader, buf *[]byte) {
	if c.arrivals.gaps() {
		c.needRanges()
	}
	c.ranges = c.arrivals.ranges(c.ranges[:0])
	info := protocol.AckInfo{Ranges: c.ranges}
	if c.arrivals.end != c.cfg.firstPacket {
		info.Delay = now - c.arrivals.newest
	}
	info.MessageLimit, info.EagerLimit = c.recvs.limits(&c.cfg)
	c.recvs.told(info.MessageLimit, info.EagerLimit)
	c.putAck(h, &info, buf)
}

// needRanges makes room for all ranges that an ACK has. Most peers lose nothing.
func (c *Conn) needRanges() {
	if c.ranges == nil {
		c.ranges = make([]protocol.Range, 0, protocol.MaxAckRanges)
	}
}

// appendFirstAck sends an ACK to a session of the peer's in which nothing has
// happened yet.
func (c *Conn) appendFirstAck(h protocol.ExtHeader) {
	info := protocol.AckInfo{
		MessageLimit: c.cfg.firstMessage + uint32(c.cfg.Messages), EagerLimit: uint32(c.cfg.EagerBytes),
	}
	c.putAck(h, &info, &c.helloBf)
}

func (c *Conn) putAck(h protocol.ExtHeader, info *protocol.AckInfo, buf *[]byte) {
	*buf = protocol.AppendAck((*buf)[:0], info)
	c.stats.PacketsSent[h.Type]++
	c.stats.BytesSent[h.Type] += uint64(len(*buf))
	a := c.next()
	a.Kind = TransmitAck
	a.Header, a.ID, a.Offset, a.Length, a.Payload = h, 0, 0, 0, *buf
}

// onAck takes an ACK from the session that we know.
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
		if int32(r.End-c.flight.next) > 0 {
			c.drop(ReasonAcknowledged, h)
			return
		}
	}
	if h.Flags&protocol.FlagHello != 0 {
		c.arrivals.now, c.arrivals.full = true, true
	}
	s := &c.sends
	// ACKs overtake each other: the limits only grow (E20).
	if int32(info.MessageLimit-s.limit) > 0 {
		s.limit = info.MessageLimit
		c.session.wait = c.cfg.Timing.HelloFirst
	}
	if int32(info.EagerLimit-s.eagerLimit) > 0 {
		s.eagerLimit = info.EagerLimit
	}
	c.acknowledged(now, h.Acknowledged, &info)
}

// landing is what an acknowledgement has told of.
type landing struct {
	count int
	// The transmission of the highest order among those acknowledged.
	order uint64
	sent  Instant
	once  bool // it was the only one of its packet
}

// acknowledged takes a cumulative acknowledgement, and what else an ACK says if
// it came with one.
func (c *Conn) acknowledged(now Instant, upTo uint32, info *protocol.AckInfo) {
	f := &c.flight
	if upTo == f.base && (info == nil || len(info.Ranges) == 0) {
		return // as most packets in the other direction say
	}
	used := 2*f.count >= c.cwnd()
	var l landing
	for int32(upTo-f.base) > 0 {
		if p := f.at(f.base); p.state != packetAcked {
			c.landed(now, p, &l)
		}
		f.base++
	}
	if info != nil {
		for _, r := range info.Ranges {
			for n := later(r.First, f.base); int32(r.End-n) > 0; n++ {
				if p := f.at(n); p.state != packetAcked {
					c.landed(now, p, &l)
				}
			}
		}
	}
	if l.count == 0 {
		return
	}
	// No honest peer has a range that begins with the first missing packet.
	for f.base != f.next && f.at(f.base).state == packetAcked {
		f.base++
	}
	c.moved, c.timer, c.stalled = now, now, 0
	c.window.acked(l.count, c.cfg.Window, used)
	if l.once {
		d := now - l.sent
		if info != nil && info.Delay < d {
			d -= info.Delay
		}
		c.trip.measured(d, &c.cfg.Timing)
	}
	if f.count > 0 {
		c.detectLoss()
	}
}

// landed takes note of a packet that has arrived.
func (c *Conn) landed(now Instant, p *packet, l *landing) {
	f := &c.flight
	l.count++
	if p.state == packetSent && p.repeats == 0 { // as most are
		p.state = packetAcked
		f.count--
		f.bytes -= p.carried()
	} else {
		f.acked(p)
	}
	// An answer that comes too soon is to an earlier transmission.
	if p.repeats == 0 || now-p.sent >= c.trip.shortest {
		f.arrivedAfter(p.order, p.sent)
	} else if p.sent > f.early {
		f.early, f.earlyTrip = p.sent, now-p.sent
	}
	if p.order > l.order {
		l.order, l.sent, l.once = p.order, p.sent, p.repeats == 0
	}
	if m := p.message; m != nil {
		p.message = nil
		m.flying--
		m.acked += int64(p.payload)
		c.doneIfAcked(m)
	}
}

// later returns the number that comes later (E4).
func later(a, b uint32) uint32 {
	if int32(a-b) > 0 {
		return a
	}
	return b
}

// detectLoss finds the packets that were overtaken (E29).
func (c *Conn) detectLoss() {
	f := &c.flight
	reorder := c.trip.reorder(&c.cfg.Timing)
	for p := f.overtaken(reorder); p != nil; p = f.overtaken(reorder) {
		f.lose(p)
		c.window.lost(p.order, f.order+1)
		c.stats.Losses++
		c.note(LossDetected).Header = p.header
	}
}

// retransmission returns when the time-out of the oldest transmission runs off,
// or the peer is given up; never if nothing is in flight.
func (c *Conn) retransmission() Instant {
	p := c.flight.oldest()
	if p == nil {
		return never
	}
	at := max(p.sent, c.timer) + c.trip.rto
	giveUp := c.cfg.Timing.GiveUp
	if end := c.moved + giveUp; giveUp > 0 && c.stalled >= minStalls && end > c.timer {
		at = min(at, end) // the last repeat has had its time, or part of it
	}
	return at
}

// timedOut repeats the packet that was sent the longest ago, and only it, or the
// first one that is missing if that was in vain (E29, E30), or gives the peer up
// (E31).
func (c *Conn) timedOut(now Instant) {
	giveUp := c.cfg.Timing.GiveUp
	if giveUp > 0 && c.stalled >= minStalls && now-c.moved >= giveUp {
		c.giveUp(now)
		return
	}
	f := &c.flight
	p := f.oldest()
	if first := f.at(f.base); c.stalled > 0 && first.state == packetSent {
		p = first // every packet of the peer tells when this one has arrived
	}
	if f.early > p.sent {
		// What was sent before that repeat is still missing, so it was the repeat
		// that was acknowledged, and the way has become shorter.
		c.trip.shortest = min(c.trip.shortest, max(f.earlyTrip, 1))
		f.newestSent = max(f.newestSent, f.early)
		f.early = 0
	}
	f.lose(p)
	c.window.lost(p.order, f.order+1)
	if f.count > 0 {
		c.detectLoss()
	}
	c.trip.timedOut(&c.cfg.Timing, &c.random)
	c.timer, c.urgent = now, true
	c.stalled++
	c.stats.TimeOuts++
	c.note(TimedOut).Header = p.header
}

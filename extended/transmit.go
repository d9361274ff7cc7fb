package extended

import (
	"math"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// control is a CLEAR_TO_SEND or ERROR that is waiting to be sent.
type control struct {
	kind    protocol.Type
	call    protocol.Call
	message uint32
	length  uint32
	code    protocol.ErrorCode
}

// controls is a queue of control packets.
type controls struct {
	queue []control
	first int
}

func (q *controls) push(p control) { q.queue = append(q.queue, p) }
func (q *controls) empty() bool    { return q.first == len(q.queue) }
func (q *controls) reset()         { q.queue, q.first = q.queue[:0], 0 }

func (q *controls) pop() control {
	p := q.queue[q.first]
	q.first++
	if q.empty() {
		q.reset()
	} else if q.first >= 1024 && q.first >= len(q.queue)/2 {
		q.queue, q.first = q.queue[:copy(q.queue, q.queue[q.first:])], 0
	}
	return p
}

// transmit sends packets as far as window and credit allow: first lost packets, then answers to the peer, then new
// messages in their order, and finally the DATA of cleared messages. A new message thus never waits for the DATA of a
// long one.
func (c *Conn) transmit(now Instant) {
	if !c.path.paced {
		c.transmitUpTo(now, math.MaxUint64)
		return
	}
	every, begun := c.path.packetInterval(), c.path.flight.order
	room := c.path.pacer.sendBudget(now, every, c.path.window.packets)
	if c.path.flight.outstanding() == 0 {
		room = max(room, initialWindow)
	}
	c.transmitUpTo(now, begun+uint64(max(room, 0)))
	c.path.pacer.onSent(int(c.path.flight.order-begun), every, c.path.window.packets)
}

// transmitUpTo does the work of transmit, up to and including the transmission with order last.
func (c *Conn) transmitUpTo(now Instant, last uint64) {
	f, s := &c.path.flight, &c.sends
	for {
		switch {
		case f.lost.count > 0:
			// The limit of bytes need not be checked: the packet was in flight before, and nothing new was sent since.
			if !c.path.bypassWindow && (f.count >= c.path.cwnd() || f.order >= last) {
				c.path.windowLimited, c.path.pacer.waiting = true, f.order >= last
				return
			}
			c.retransmit(now)
			continue
		case c.controls.empty() && s.eager == nil && (s.queued == nil || !s.hasCredit()) && s.cleared == nil:
			c.path.windowFullNoted, c.path.windowLimited = false, false
			if s.queued != nil && !s.exhaustedNoted && s.messageLimit != c.cfg.firstMessage {
				s.exhaustedNoted = true
				c.note(CreditExhausted)
			}
			return
		case f.count >= c.path.cwnd() || f.outstanding() >= c.cfg.Window,
			c.path.exceedsWindow(int64(c.path.maxPayload)) && c.path.exceedsWindow(c.nextPayload()):
			c.path.windowLimited = f.count >= c.path.cwnd()
			if !c.path.windowFullNoted {
				c.path.windowFullNoted = true
				c.note(WindowFull)
			}
			return
		case f.order >= last:
			c.path.windowLimited, c.path.pacer.waiting = true, true
			return
		case !c.controls.empty():
			c.sendControl(now)
		case s.eager != nil:
			c.sendData(now, s.eager)
		case s.queued != nil && s.hasCredit():
			c.beginMessage(now)
		default:
			c.sendData(now, s.cleared)
		}
	}
}

// nextPayload returns the number of payload bytes in the next new packet.
func (c *Conn) nextPayload() int64 {
	s := &c.sends
	most := int64(c.path.maxPayload)
	switch {
	case !c.controls.empty():
		return 0
	case s.eager != nil:
		return min(s.eager.bytesToSend-s.eager.bytesSent, most)
	case s.queued != nil && s.hasCredit():
		if !s.canSendEagerly(s.queued) {
			return 0
		}
		return min(s.queued.op.Length, most)
	}
	if c.path.fetchPayload > 0 {
		return 0
	}
	return min(s.cleared.sendableBytes(), most)
}

// sendControl sends the first control packet of the queue.
func (c *Conn) sendControl(now Instant) {
	q := c.controls.pop()
	p, a := c.newPacket(now, q.kind, q.call, q.message)
	h := &a.Header
	h.Comm, h.Tag, h.Length, h.Offset = 0, uint32(q.code), q.length, 0
	c.transmitPacket(now, p, a)
}

// begin begins the next message: it sends the first DATA if the message may be sent eagerly, and otherwise SEND_REQUEST
// (E10–E13).
func (c *Conn) beginMessage(now Instant) {
	c.convertShorts()
	s := &c.sends
	m := s.queued
	s.queued = m.next
	s.begunSends++
	s.exhaustedNoted = false
	m.number = s.number
	s.number++
	c.path.flight.lastBegun = c.path.nextNumber()
	if s.canSendEagerly(m) {
		s.eagerSent += uint32(m.op.Length)
		s.eager, m.state, m.bytesToSend = m, Eager, m.op.Length
		c.stats.EagerSends++
		a := c.nextAction()
		a.Kind, a.ID = Buffered, m.op.ID
		c.sendData(now, m)
		return
	}
	if s.mayBeEager(m) {
		c.note(EagerExhausted).ID = m.op.ID
	}
	m.state = WaitClear
	s.byNumber.put(m.number, m)
	p, a := c.newPacket(now, protocol.SendRequest, m.op.Datatype.SendCall(), m.number)
	h := &a.Header
	h.Comm, h.Tag, h.Length, h.Offset = m.op.Comm, m.op.Tag, uint32(m.op.Length), 0
	if m.op.Sync {
		h.Flags |= protocol.FlagSync
	}
	c.transmitPacket(now, p, a)
	a.ID = m.op.ID
}

// sendData sends the next DATA packet of a message.
func (c *Conn) sendData(now Instant, m *outbound) {
	s := &c.sends
	most := c.path.maxPayload
	fetched := c.path.fetchPayload > 0 && m.state != Eager
	if fetched {
		most = c.path.fetchPayload
	}
	n := min(m.sendableBytes(), int64(most))
	p, a := c.newPacket(now, protocol.Data, m.op.Datatype.SendCall(), m.number)
	p.message, p.payload, p.fetched = m, int32(n), fetched
	h := &a.Header
	h.Comm, h.Tag, h.Length, h.Offset = m.op.Comm, m.op.Tag, uint32(m.op.Length), uint32(m.bytesSent)
	m.bytesSent += n
	m.unackedPackets++
	m.allSent = m.bytesSent == m.bytesToSend
	if m.state == Eager {
		h.Flags |= protocol.FlagEager
		if m.allSent {
			s.eager = nil
		}
	} else if m.allSent {
		h.Flags |= protocol.FlagAckNow
		s.unlistCleared(m)
	} else if m.op.Partial && m.sendableBytes() == 0 {
		s.unlistCleared(m) // until more is available
	}
	c.transmitPacket(now, p, a)
}

// newPacket adds a new packet and the action that transmits it. The caller sets the communicator, tag, length and offset
// in the action's header, and then calls put.
func (c *Conn) newPacket(now Instant, t protocol.Type, call protocol.Call, message uint32) (*packet, *Action) {
	c.convertShorts()
	p, a := c.path.flight.add(), c.nextAction()
	a.Kind = Transmit
	if c.path.flight.outstanding() == 1 {
		c.path.onResume(now)
	}
	h := &a.Header
	h.Dst, h.Src = c.cfg.Remote, c.cfg.Local
	h.Type, h.Call, h.Flags = t, call, c.plainFlag
	h.Session, h.PeerSession = c.session.local, c.session.remote
	h.Number, h.Message = p.header.Number, message
	return p, a
}

// retransmit retransmits the first packet in the list of lost packets.
func (c *Conn) retransmit(now Instant) {
	f := &c.path.flight
	p := f.packetAt(f.lost.first)
	f.remove(&f.lost, p)
	p.header.Flags |= protocol.FlagRetransmit
	if c.path.bypassWindow {
		// The ACK that answers shows which other packets are missing.
		p.header.Flags |= protocol.FlagAckNow
		c.path.bypassWindow = false
	}
	if p.retransmissions < math.MaxUint16 {
		p.retransmissions++
	}
	c.stats.Retransmissions++
	m := p.message
	if m == nil && p.header.Type == protocol.SendRequest {
		m = c.sends.byNumber.get(p.header.Message)
	}
	if m != nil {
		m.retransmissions++
	}
	c.note(Retransmitted).Header = p.header
	a := c.nextAction()
	a.Kind = Transmit
	a.Header = p.header
	c.transmitPacket(now, p, a)
	if m != nil {
		a.ID = m.op.ID
	}
}

// transmitPacket completes the action that transmits p, and records the transmission. p must not be in a list.
func (c *Conn) transmitPacket(now Instant, p *packet, a *Action) {
	f := &c.path.flight
	f.markSent(now, p)
	if p.retransmissions > 0 {
		f.append(&f.retransmitted, p)
	}
	h := &a.Header
	// The packet that fills the window asks for an ACK, unless another packet in flight already does (E27).
	if f.count >= c.path.cwnd() || f.outstanding() >= c.cfg.Window || c.path.exceedsWindow(int64(c.path.maxPayload)) {
		if int32(c.path.lastAckNow-f.base) < 0 || int32(c.path.lastAckNow-f.nextNumber) >= 0 {
			h.Flags |= protocol.FlagAckNow
		}
	}
	// On a long path, one packet in each quarter of a small window asks for an ACK, so that the window is not sent in
	// bursts.
	if w := &c.path.window; c.path.paced && w.packets < 4*ackEvery &&
		int(h.Number-later(c.path.lastAckNow, f.base-1)) >= w.packets/4 {
		h.Flags |= protocol.FlagAckNow
	}
	if h.Flags&protocol.FlagAckNow != 0 {
		c.path.lastAckNow = h.Number
	}
	h.Acknowledged, h.Clock = c.arrivals.firstMissing, clockAt(now)
	c.stats.PacketsSent[h.Type]++
	c.stats.BytesSent[h.Type] += uint64(p.payload)
	a.ID, a.Offset, a.Length, a.Payload = 0, int64(h.Offset), int64(p.payload), nil
	if p.message != nil {
		a.ID = p.message.op.ID
	}
	p.header = *h
}

package extended

import (
	"math"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// control is a packet of type CLEAR_TO_SEND or ERROR that is waiting to be sent.
type control struct {
	kind    protocol.Type
	call    protocol.Call
	message uint32
	// length is the number of bytes that a CLEAR_TO_SEND grants. code is set in an ERROR.
	length uint32
	code   protocol.ErrorCode
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

// transmitUpTo is like transmit, but stops after the transmission whose order is last.
func (c *Conn) transmitUpTo(now Instant, last uint64) {
	f, send := &c.path.flight, &c.sends
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
		case c.controls.empty() && send.eager == nil && (send.queued == nil || !send.hasCredit()) && send.cleared == nil:
			c.path.windowFullNoted, c.path.windowLimited = false, false
			if send.queued != nil && !send.exhaustedNoted && send.messageLimit != c.cfg.firstMessage {
				send.exhaustedNoted = true
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
		case send.eager != nil:
			c.sendData(now, send.eager)
		case send.queued != nil && send.hasCredit():
			c.beginMessage(now)
		default:
			c.sendData(now, send.cleared)
		}
	}
}

// nextPayload returns the number of payload bytes that the next new packet will carry.
func (c *Conn) nextPayload() int64 {
	send := &c.sends
	most := int64(c.path.maxPayload)
	switch {
	case !c.controls.empty():
		return 0
	case send.eager != nil:
		return min(send.eager.bytesToSend-send.eager.bytesSent, most)
	case send.queued != nil && send.hasCredit():
		if !send.canSendEagerly(send.queued) {
			return 0
		}
		return min(send.queued.op.Length, most)
	}
	if c.path.fetchPayload > 0 {
		return 0
	}
	return min(send.cleared.sendableBytes(), most)
}

// sendControl sends the first control packet of the queue.
func (c *Conn) sendControl(now Instant) {
	q := c.controls.pop()
	p, a := c.newPacket(now, q.kind, q.call, q.message)
	h := &a.Header
	h.Comm, h.Tag, h.Length, h.Offset = 0, uint32(q.code), q.length, 0
	c.transmitPacket(now, p, a)
}

// beginMessage begins the next message: it sends the first DATA if the message may be sent eagerly, and otherwise
// SEND_REQUEST (E10–E13).
func (c *Conn) beginMessage(now Instant) {
	c.convertShorts()
	send := &c.sends
	message := send.queued
	send.queued = message.next
	send.begunSends++
	send.exhaustedNoted = false
	message.number = send.number
	send.number++
	c.path.flight.lastBegun = c.path.nextNumber()
	if send.canSendEagerly(message) {
		send.eagerSent += uint32(message.op.Length)
		send.eager, message.state, message.bytesToSend = message, Eager, message.op.Length
		c.stats.EagerSends++
		a := c.nextAction()
		a.Kind, a.ID = Buffered, message.op.ID
		c.sendData(now, message)
		return
	}
	if send.mayBeEager(message) {
		c.note(EagerExhausted).ID = message.op.ID
	}
	message.state = WaitClear
	send.byNumber.put(message.number, message)
	pkt, action := c.newPacket(now, protocol.SendRequest, message.op.Datatype.SendCall(), message.number)
	h := &action.Header
	h.Comm, h.Tag, h.Length, h.Offset = message.op.Comm, message.op.Tag, uint32(message.op.Length), 0
	if message.op.Sync {
		h.Flags |= protocol.FlagSync
	}
	c.transmitPacket(now, pkt, action)
	action.ID = message.op.ID
}

// sendData sends the next DATA packet of a message.
func (c *Conn) sendData(now Instant, message *outbound) {
	send := &c.sends
	most := c.path.maxPayload
	fetched := c.path.fetchPayload > 0 && message.state != Eager
	if fetched {
		most = c.path.fetchPayload
	}
	n := min(message.sendableBytes(), int64(most))
	pkt, action := c.newPacket(now, protocol.Data, message.op.Datatype.SendCall(), message.number)
	pkt.message, pkt.payload, pkt.fetched = message, int32(n), fetched
	header := &action.Header
	header.Comm, header.Tag, header.Length, header.Offset = message.op.Comm, message.op.Tag, uint32(message.op.Length),
		uint32(message.bytesSent)
	message.bytesSent += n
	message.unackedPackets++
	message.allSent = message.bytesSent == message.bytesToSend
	if message.state == Eager {
		header.Flags |= protocol.FlagEager
		if message.allSent {
			send.eager = nil
		}
	} else if message.allSent {
		header.Flags |= protocol.FlagAckNow
		send.unlistCleared(message)
	} else if message.op.Partial && message.sendableBytes() == 0 {
		send.unlistCleared(message) // until more is available
	}
	c.transmitPacket(now, pkt, action)
}

// newPacket adds a new packet and the action that transmits it. The caller sets the communicator, tag, length and
// offset in the action's header, and then calls transmitPacket.
func (c *Conn) newPacket(now Instant, t protocol.Type, call protocol.Call, message uint32) (*packet, *Action) {
	c.convertShorts()
	pkt, action := c.path.flight.add(), c.nextAction()
	action.Kind = Transmit
	if c.path.flight.outstanding() == 1 {
		c.path.onResume(now)
	}
	h := &action.Header
	h.Dst, h.Src = c.cfg.Remote, c.cfg.Local
	h.Type, h.Call, h.Flags = t, call, c.plainFlag
	h.Session, h.PeerSession = c.session.local, c.session.remote
	h.Number, h.Message = pkt.header.Number, message
	return pkt, action
}

// retransmit retransmits the first packet in the list of lost packets.
func (c *Conn) retransmit(now Instant) {
	f := &c.path.flight
	pkt := f.packetAt(f.lost.first)
	f.remove(&f.lost, pkt)
	pkt.header.Flags |= protocol.FlagRetransmit
	if c.path.bypassWindow {
		// The ACK that answers this packet shows which other packets are missing.
		pkt.header.Flags |= protocol.FlagAckNow
		c.path.bypassWindow = false
	}
	if pkt.retransmissions < math.MaxUint16 {
		pkt.retransmissions++
	}
	c.stats.Retransmissions++
	message := pkt.message
	if message == nil && pkt.header.Type == protocol.SendRequest {
		message = c.sends.byNumber.get(pkt.header.Message)
	}
	if message != nil {
		message.retransmissions++
	}
	c.note(Retransmitted).Header = pkt.header
	a := c.nextAction()
	a.Kind = Transmit
	a.Header = pkt.header
	c.transmitPacket(now, pkt, a)
	if message != nil {
		a.ID = message.op.ID
	}
}

// transmitPacket completes the action that transmits p, and records the transmission. p must not be in a list.
func (c *Conn) transmitPacket(now Instant, pkt *packet, action *Action) {
	f := &c.path.flight
	f.markSent(now, pkt)
	if pkt.retransmissions > 0 {
		f.append(&f.retransmitted, pkt)
	}
	header := &action.Header
	// The packet that fills the window asks for an ACK, unless another packet in flight already does (E27).
	if f.count >= c.path.cwnd() || f.outstanding() >= c.cfg.Window || c.path.exceedsWindow(int64(c.path.maxPayload)) {
		if int32(c.path.lastAckNow-f.base) < 0 || int32(c.path.lastAckNow-f.nextNumber) >= 0 {
			header.Flags |= protocol.FlagAckNow
		}
	}
	// On a long path, one packet in each quarter of a small window asks for an ACK, so that the window is not sent in
	// bursts.
	if w := &c.path.window; c.path.paced && w.packets < 4*ackEvery &&
		int(header.Number-later(c.path.lastAckNow, f.base-1)) >= w.packets/4 {
		header.Flags |= protocol.FlagAckNow
	}
	if header.Flags&protocol.FlagAckNow != 0 {
		c.path.lastAckNow = header.Number
	}
	header.Acknowledged, header.Clock = c.arrivals.firstMissing, clockAt(now)
	c.stats.PacketsSent[header.Type]++
	c.stats.BytesSent[header.Type] += uint64(pkt.payload)
	action.ID, action.Offset, action.Length, action.Payload = 0, int64(header.Offset), int64(pkt.payload), nil
	if pkt.message != nil {
		action.ID = pkt.message.op.ID
	}
	pkt.header = *header
}

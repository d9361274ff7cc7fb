package extended

import "github.com/zrlmpi/zrlmpid/protocol"

// control is a packet without payload that waits to be sent: CLEAR_TO_SEND or
// ERROR.
type control struct {
	kind    protocol.Type
	call    protocol.Call
	message uint32
	length  uint32
	code    protocol.ErrorCode
}

// controls is a queue.
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

// transmit sends what window and credit allow: what was lost, then answers to
// the peer, then new messages in their order, and at last the DATA of those that
// are cleared, so that no message waits behind one that is merely longer.
func (c *Conn) transmit(now Instant, acts []Action) []Action {
	f, s := &c.flight, &c.sends
	for {
		switch {
		case f.lost.count > 0:
			if !c.urgent && f.sent.count >= c.cwnd() {
				return acts
			}
			acts = c.repeat(now, acts)
			continue
		case c.controls.empty() && s.eager == nil && (s.queued == nil || c.blocked()) && s.cleared == nil:
			c.full = false
			if s.queued != nil && !s.blocked && s.limit != c.cfg.firstMessage {
				s.blocked = true
				acts = c.note(CreditExhausted, acts)
			}
			return acts
		case f.sent.count >= c.cwnd() || f.outstanding() >= c.cfg.Window:
			if !c.full {
				c.full = true
				acts = c.note(WindowFull, acts)
			}
			return acts
		case !c.controls.empty():
			acts = c.sendControl(now, acts)
		case s.eager != nil:
			acts = c.sendData(now, s.eager, acts)
		case s.queued != nil && !c.blocked():
			acts = c.begin(now, acts)
		default:
			acts = c.sendData(now, s.cleared, acts)
		}
	}
}

// cwnd is how many packets may be in flight.
func (c *Conn) cwnd() int { return min(c.window.window, c.cfg.Window) }

// blocked reports whether the next message waits for credit (E20).
func (c *Conn) blocked() bool { return int32(c.sends.limit-c.sends.next) <= 0 }

// sendControl sends the first of the answers that wait.
func (c *Conn) sendControl(now Instant, acts []Action) []Action {
	q := c.controls.pop()
	p := c.flight.add()
	p.header.Type, p.header.Call, p.header.Message, p.header.Length = q.kind, q.call, q.message, q.length
	p.header.Tag = uint32(q.code)
	return c.send(now, p, acts)
}

// begin sends the first packet of the next message, eagerly if that may be
// (E10–E13).
func (c *Conn) begin(now Instant, acts []Action) []Action {
	s := &c.sends
	m := s.queued
	s.queued = m.after
	s.begun++
	s.blocked = false
	m.number = s.next
	s.next++
	if !m.op.Sync && m.op.Length <= int64(c.cfg.EagerLimit) {
		if m.op.Length <= int64(s.eagerLimit-s.eagerSent) {
			s.eagerSent += uint32(m.op.Length)
			s.eager, m.state, m.take = m, Eager, m.op.Length
			c.stats.SendsEager++
			acts = append(acts, Action{Kind: Buffered, ID: m.op.ID})
			return c.sendData(now, m, acts)
		}
		acts = c.note(EagerExhausted, acts)
		acts[len(acts)-1].ID = m.op.ID
	}
	m.state = WaitClear
	s.byNumber.put(uint64(m.number), m)
	p := c.flight.add()
	h := &p.header
	h.Type, h.Call, h.Message = protocol.SendRequest, m.op.Datatype.Send(), m.number
	h.Comm, h.Tag, h.Length = m.op.Comm, m.op.Tag, uint32(m.op.Length)
	if m.op.Sync {
		h.Flags = protocol.FlagSync
	}
	return c.send(now, p, acts)
}

// sendData sends the next packet of DATA of a message.
func (c *Conn) sendData(now Instant, m *outbound, acts []Action) []Action {
	s := &c.sends
	n := min(m.take-m.offset, int64(c.cfg.MaxPayload))
	p := c.flight.add()
	p.message, p.payload = m, int32(n)
	h := &p.header
	h.Type, h.Call, h.Message = protocol.Data, m.op.Datatype.Send(), m.number
	h.Comm, h.Tag, h.Length, h.Offset = m.op.Comm, m.op.Tag, uint32(m.op.Length), uint32(m.offset)
	m.offset += n
	m.flying++
	m.out = m.offset == m.take
	if m.state == Eager {
		h.Flags = protocol.FlagEager
		if m.out {
			s.eager = nil
		}
	} else if m.out {
		h.Flags = protocol.FlagAckNow
		s.cleared, m.behind = m.behind, nil
	}
	return c.send(now, p, acts)
}

// send transmits a new packet, whose header has no more to get than what all
// packets have.
func (c *Conn) send(now Instant, p *packet, acts []Action) []Action {
	if c.flight.outstanding() == 1 {
		c.moved, c.stalled = now, 0
	}
	h := &p.header
	h.Dst, h.Src = c.cfg.Remote, c.cfg.Local
	h.Session, h.PeerSession = c.session.local, c.session.remote
	return c.put(now, p, acts)
}

// repeat transmits the first of the lost packets again.
func (c *Conn) repeat(now Instant, acts []Action) []Action {
	f := &c.flight
	p := f.at(f.lost.first)
	f.remove(&f.lost, p)
	p.header.Flags |= protocol.FlagRepeat
	if c.urgent {
		// The answer tells what else is missing.
		p.header.Flags |= protocol.FlagAckNow
		c.urgent = false
	}
	p.repeats++
	c.stats.Repeats++
	m := p.message
	if m == nil && p.header.Type == protocol.SendRequest {
		m = c.sends.byNumber.get(uint64(p.header.Message))
	}
	if m != nil {
		m.repeats++
	}
	acts = c.note(Repeated, acts)
	acts[len(acts)-1].Header = p.header
	return c.put(now, p, acts)
}

// put transmits a packet that is in no list.
func (c *Conn) put(now Instant, p *packet, acts []Action) []Action {
	f := &c.flight
	f.transmitted(now, p)
	h := &p.header
	// The one that fills the window asks for an ACK, unless one in flight does
	// (E27).
	if f.sent.count >= c.cwnd() || f.outstanding() >= c.cfg.Window {
		if int32(c.asked-f.base) < 0 || int32(c.asked-f.next) >= 0 {
			h.Flags |= protocol.FlagAckNow
		}
	}
	if h.Flags&protocol.FlagAckNow != 0 {
		c.asked = h.Number
	}
	h.Acknowledged = c.arrivals.next
	c.stats.PacketsSent[h.Type]++
	c.stats.BytesSent[h.Type] += uint64(p.payload)
	a := Action{Kind: Transmit, Header: *h, Offset: int64(h.Offset), Length: int64(p.payload)}
	if p.message != nil {
		a.ID = p.message.op.ID
	}
	return append(acts, a)
}

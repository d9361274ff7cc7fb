package extended

import "github.com/zrlmpi/zrlmpid/protocol"

// onRequest takes SEND_REQUEST (E12).
func (c *Conn) onRequest(now Instant, h *protocol.ExtHeader, payload []byte) Reason {
	r := &c.recvs
	if !h.Call.IsSend() {
		return ReasonDirection
	}
	if len(payload) > 0 || h.Tag > protocol.MaxExtTag {
		return ReasonMismatch
	}
	if h.Message != r.expected {
		return c.hold(h, payload)
	}
	if reason := c.mayBegin(h); reason != ReasonNone {
		return reason
	}
	if int64(h.Length) > c.cfg.MaxLength {
		r.expected++
		r.matched++
		r.adapt(&c.cfg)
		c.controls.push(control{
			kind: protocol.Error, call: h.Call.Counterpart(), message: h.Message, code: protocol.CodeTooLong,
		})
		c.note(Refused).Length = int64(h.Length)
		return ReasonNone
	}
	c.open(now, h)
	return ReasonNone
}

// mayBegin checks that the peer keeps to the limits that it was sent, with the
// message that is next.
func (c *Conn) mayBegin(h *protocol.ExtHeader) Reason {
	r := &c.recvs
	messages, eager := r.limits(&c.cfg)
	if int32(h.Message-messages) >= 0 {
		return ReasonCredit
	}
	if h.Type == protocol.Data && h.Length > eager-r.eager {
		return ReasonCredit
	}
	return ReasonNone
}

// open begins a message.
func (c *Conn) open(now Instant, h *protocol.ExtHeader) *inbound {
	r := &c.recvs
	m := r.take()
	m.number, m.comm, m.tag, m.datatype = h.Message, h.Comm, h.Tag, h.Call.Datatype()
	m.length, m.since, m.before = int64(h.Length), now, r.last
	m.eager = h.Type == protocol.Data
	if m.eager {
		m.take = m.length
		r.eager += h.Length
	}
	if r.last == nil {
		r.first = m
	} else {
		r.last.after = m
	}
	r.last = m
	if last := r.newest; last != nil {
		r.byNumber.put(uint64(last.number), last)
	}
	r.newest = m
	r.expected++
	r.adapt(&c.cfg)
	a := c.next()
	a.Kind = Open
	a.Message, a.Comm, a.Tag, a.Length = c.message(m), h.Comm, h.Tag, int64(h.Length)
	a.Datatype, a.Eager, a.Advertised = m.datatype, m.eager, c.offered && !m.eager
	return m
}

// message is the caller's name of a message.
func (c *Conn) message(m *inbound) Message { return c.named(m.number) }

func (c *Conn) named(number uint32) Message {
	return Message(uint64(c.session.epoch)<<32 | uint64(number))
}

// onData takes DATA, eager (E11) or asked for (E12).
func (c *Conn) onData(now Instant, h *protocol.ExtHeader, payload []byte) Reason {
	r := &c.recvs
	eager := h.Flags&protocol.FlagEager != 0
	switch end := uint64(h.Offset) + uint64(len(payload)); {
	case !h.Call.IsSend():
		return ReasonDirection
	case end > uint64(h.Length), len(payload) == 0 && h.Length > 0, h.Tag > protocol.MaxExtTag:
		return ReasonMismatch
	}
	var m *inbound
	switch d := int32(h.Message - r.expected); {
	case d < 0:
		if m = r.find(h.Message); m != nil && m.complete() {
			return ReasonUnsolicited
		}
	case d > 0 && eager:
		return c.hold(h, payload)
	case eager:
		if reason := c.mayBegin(h); reason != ReasonNone {
			return reason
		}
		m = c.open(now, h)
	}
	if m == nil || !m.eager && !m.accepted {
		return ReasonUnsolicited
	}
	if reason := m.misfit(h, len(payload)); reason != ReasonNone {
		return reason
	}
	m.got += int64(len(payload))
	if m.accepted {
		// An eager message may be longer than there is room for (E14).
		payload = payload[:max(min(int64(len(payload)), m.room-int64(h.Offset)), 0)]
	}
	if len(payload) > 0 {
		a := c.next()
		a.Kind = Copy
		a.Message, a.Offset, a.Payload = c.message(m), int64(h.Offset), payload
	}
	c.arrived(m)
	return ReasonNone
}

// arrived reports a message of which all has come.
func (c *Conn) arrived(m *inbound) {
	if !m.complete() {
		return
	}
	c.stats.Arrived++
	a := c.next()
	a.Kind, a.Message = Arrived, c.message(m)
	if m.accepted {
		c.recvs.waiting--
		c.recvs.close(m)
	}
}

// Accept says that the caller has matched a message with a receive of room
// bytes. That returns the credit, and clears a message that was announced. A
// message that is no more is no fault.
func (c *Conn) Accept(_ Instant, message Message, room int64, acts []Action) []Action {
	return c.accept(message, room, false, acts)
}

// accept is Accept, and Fetched.
func (c *Conn) accept(message Message, room int64, fetched bool, acts []Action) []Action {
	r := &c.recvs
	if uint32(message>>32) != c.session.epoch {
		return acts
	}
	m := r.find(message.Number())
	if m == nil || m.accepted {
		return acts
	}
	c.changed = true
	r.matched++
	r.adapt(&c.cfg)
	m.accepted, m.room = true, max(room, 0)
	r.waiting++
	if m.eager {
		if !m.returned {
			r.matchedBytes += uint32(m.length)
		}
		if m.complete() {
			r.waiting--
			r.close(m)
		}
		return acts
	}
	if !fetched {
		m.take = min(m.room, m.length)
	}
	c.controls.push(control{
		kind: protocol.ClearToSend, call: m.datatype.Recv(), message: m.number, length: uint32(m.take),
	})
	c.acts = acts
	c.arrived(m)
	return c.acts
}

// onCancel takes ERROR cancel (E16).
func (c *Conn) onCancel(h *protocol.ExtHeader) Reason {
	r := &c.recvs
	if !h.Call.IsSend() {
		return ReasonDirection
	}
	if int32(h.Message-r.expected) >= 0 {
		return c.hold(h, nil)
	}
	m := r.find(h.Message)
	if m == nil {
		if ref := r.resting.get(h.Message); ref == 0 || ref&eagerBit != 0 {
			return ReasonStale
		}
		r.asked = append(r.asked, h.Message)
		return ReasonNone
	}
	if m.eager || m.accepted {
		return ReasonStale // CLEAR_TO_SEND is the answer, or was
	}
	if !m.asked {
		m.asked = true
		r.asked = append(r.asked, m.number)
	}
	return ReasonNone
}

// forget answers the cancellations that were asked for since the last Flush. Only
// now has the caller seen every Open, and so matched what can be.
func (c *Conn) forget() {
	r := &c.recvs
	for _, number := range r.asked {
		m, rest := r.find(number), r.resting.find(number)
		if m == nil && rest < 0 || m != nil && m.accepted {
			continue // CLEAR_TO_SEND is the answer
		}
		c.stats.Lost++
		a := c.next()
		a.Kind, a.Err = Lost, ErrCanceled
		a.Message, a.Ref = c.named(number), 0
		call := protocol.RecvInt
		if m != nil {
			call = m.datatype.Recv()
			r.close(m)
		} else {
			ref := r.resting.slots[rest].ref
			if a.Ref = ref & refBits; ref&floatBit != 0 {
				call = protocol.RecvFloat
			}
			r.resting.remove(rest)
		}
		c.controls.push(control{kind: protocol.Error, call: call, message: number, code: protocol.CodeCanceled})
		r.matched++
		r.adapt(&c.cfg)
	}
	r.asked = r.asked[:0]
}

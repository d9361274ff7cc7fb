package extended

import "github.com/zrlmpi/zrlmpid/protocol"

// Accept informs the Conn that a message was matched with a receive of room bytes. The Conn returns the message's
// credit to the peer, and sends CLEAR_TO_SEND for an announced message. Accept does nothing for a message that no
// longer exists.
func (c *Conn) Accept(_ Instant, message Message, room int64, acts []Action) []Action {
	return c.recvs.accept(message, room, false, acts)
}

// onRequest handles a SEND_REQUEST (E12). missing is the number of the first missing packet.
func (r *receiving) onRequest(now Instant, h *protocol.ExtHeader, payload []byte, missing uint32) Reason {
	if !h.Call.IsSend() {
		return ReasonDirection
	}
	if len(payload) > 0 || h.Tag > protocol.MaxExtTag {
		return ReasonMismatch
	}
	if h.Message != r.expected {
		return r.hold(h, payload, missing)
	}
	if reason := r.mayBegin(h); reason != ReasonNone {
		return reason
	}
	if int64(h.Length) > r.cfg.MaxLength {
		r.expected++
		r.matched++
		r.adapt()
		r.controls.push(control{
			kind: protocol.Error, call: h.Call.Counterpart(), message: h.Message, code: protocol.CodeTooLong,
		})
		r.note(Refused).Length = int64(h.Length)
		return ReasonNone
	}
	r.begin(now, h)
	return ReasonNone
}

// mayBegin returns ReasonNone if the next message is within the limits sent to the peer, and otherwise ReasonCredit.
func (r *receiving) mayBegin(h *protocol.ExtHeader) Reason {
	messages, eager := r.limits()
	if int32(h.Message-messages) >= 0 {
		return ReasonCredit
	}
	if h.Type == protocol.Data && h.Length > eager-r.eager {
		return ReasonCredit
	}
	return ReasonNone
}

// begin opens a message.
func (r *receiving) begin(now Instant, h *protocol.ExtHeader) *inbound {
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
		r.byNumber.put(last.number, last)
	}
	r.newest = m
	r.expected++
	r.adapt()
	a := r.next()
	a.Kind = Open
	a.Message, a.Comm, a.Tag, a.Length = r.message(m.number), h.Comm, h.Tag, int64(h.Length)
	a.Datatype, a.Eager, a.Advertised = m.datatype, m.eager, r.offered && !m.eager
	return m
}

// message returns the caller's identifier of a message.
func (r *receiving) message(number uint32) Message {
	return Message(uint64(r.epoch)<<32 | uint64(number))
}

// onData handles a DATA packet of an eager (E11) or cleared (E12) message.
func (r *receiving) onData(now Instant, h *protocol.ExtHeader, payload []byte, missing uint32) Reason {
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
		return r.hold(h, payload, missing)
	case eager:
		if reason := r.mayBegin(h); reason != ReasonNone {
			return reason
		}
		m = r.begin(now, h)
	}
	if m == nil || !m.eager && !m.accepted {
		return ReasonUnsolicited
	}
	if reason := m.misfit(h, len(payload)); reason != ReasonNone {
		return reason
	}
	m.got += int64(len(payload))
	if m.accepted {
		// An eager message may be longer than the receive (E14).
		payload = payload[:max(min(int64(len(payload)), m.room-int64(h.Offset)), 0)]
	}
	if len(payload) > 0 {
		a := r.next()
		a.Kind = Copy
		a.Message, a.Offset, a.Payload = r.message(m.number), int64(h.Offset), payload
	}
	r.arrived(m)
	return ReasonNone
}

// arrived reports a message to the caller if it is complete.
func (r *receiving) arrived(m *inbound) {
	if !m.complete() {
		return
	}
	r.stats.Arrived++
	a := r.next()
	a.Kind, a.Message = Arrived, r.message(m.number)
	if m.accepted {
		r.waiting--
		r.close(m)
	}
}

// accept implements Accept and Fetched.
func (r *receiving) accept(message Message, room int64, fetched bool, acts []Action) []Action {
	if uint32(message>>32) != r.epoch {
		return acts
	}
	m := r.find(message.Number())
	if m == nil || m.accepted {
		return acts
	}
	r.changed = true
	r.matched++
	r.adapt()
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
	r.controls.push(control{
		kind: protocol.ClearToSend, call: m.datatype.Recv(), message: m.number, length: uint32(m.take),
	})
	r.acts = acts
	r.arrived(m)
	return r.acts
}

// onCancel handles ERROR cancel (E16).
func (r *receiving) onCancel(h *protocol.ExtHeader, missing uint32) Reason {
	if !h.Call.IsSend() {
		return ReasonDirection
	}
	if int32(h.Message-r.expected) >= 0 {
		return r.hold(h, nil, missing)
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
		return ReasonStale // CLEAR_TO_SEND answers it, or already has
	}
	if !m.asked {
		m.asked = true
		r.asked = append(r.asked, m.number)
	}
	return ReasonNone
}

// onAborted handles ERROR aborted.
func (r *receiving) onAborted(h *protocol.ExtHeader) Reason {
	m := r.find(h.Message)
	switch {
	case !h.Call.IsSend():
		return ReasonDirection
	case int32(h.Message-r.expected) >= 0:
		return ReasonUnsolicited
	case m == nil || m.eager || !m.accepted:
		return ReasonStale
	}
	a := r.next()
	a.Kind = Lost
	a.Message, a.Ref, a.Err = r.message(m.number), 0, ErrAborted
	r.waiting--
	r.close(m)
	return ReasonNone
}

// forget answers the cancellations that the peer has requested since the last Flush. They are not answered earlier,
// because only now has the caller handled every Open and matched every message that has a receive.
func (r *receiving) forget() {
	for _, number := range r.asked {
		m, ref := r.find(number), r.resting.get(number)
		if m == nil && ref == 0 || m != nil && m.accepted {
			continue // CLEAR_TO_SEND answers the request
		}
		a := r.next()
		a.Kind, a.Err = Lost, ErrCanceled
		a.Message, a.Ref = r.message(number), 0
		call := protocol.RecvInt
		if m != nil {
			call = m.datatype.Recv()
			r.close(m)
		} else {
			if a.Ref = ref & refBits; ref&floatBit != 0 {
				call = protocol.RecvFloat
			}
			takeRest(r.resting, number)
		}
		r.controls.push(control{kind: protocol.Error, call: call, message: number, code: protocol.CodeCanceled})
		r.matched++
		r.adapt()
	}
	r.asked = r.asked[:0]
}

// end reports incomplete messages as lost. Complete resting messages are not reported; the caller has all of their
// data.
func (r *receiving) end(e *sessionEnd) {
	for m := r.first; m != nil; m = m.after {
		if !m.complete() {
			a := r.next()
			a.Kind = Lost
			a.Message, a.Ref, a.Err = r.message(m.number), 0, e.failure(r.wait(m))
		}
	}
	if r.resting.len() > 0 {
		a := r.next()
		a.Kind = LostRests
		a.Err = e.failure(Wait{State: Announced, Local: r.cfg.Local, Remote: r.cfg.Remote, Since: e.now})
	}
}

func (r *receiving) wait(m *inbound) Wait {
	w := Wait{
		Message: r.message(m.number), State: Announced, Local: r.cfg.Local, Remote: r.cfg.Remote, Since: m.since,
		Length: m.length, Done: m.got,
	}
	switch {
	case m.eager:
		w.State = Arriving
	case m.accepted:
		w.State = Cleared
	}
	return w
}

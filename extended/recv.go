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
	if h.Message != r.nextMessage {
		return r.holdPacket(h, payload, missing)
	}
	if reason := r.checkCredit(h); reason != ReasonNone {
		return reason
	}
	if int64(h.Length) > r.cfg.MaxLength {
		r.nextMessage++
		r.matched++
		r.adaptWindow()
		r.controls.push(control{
			kind: protocol.Error, call: h.Call.Counterpart(), message: h.Message, code: protocol.CodeTooLong,
		})
		r.note(Refused).Length = int64(h.Length)
		return ReasonNone
	}
	r.openMessage(now, h)
	return ReasonNone
}

// checkCredit returns ReasonNone if the next message is within the limits sent to the peer, and otherwise ReasonCredit.
func (r *receiving) checkCredit(h *protocol.ExtHeader) Reason {
	messages, eager := r.limits()
	if int32(h.Message-messages) >= 0 {
		return ReasonCredit
	}
	if h.Type == protocol.Data && h.Length > eager-r.eagerBytes {
		return ReasonCredit
	}
	return ReasonNone
}

// openMessage opens a message.
func (r *receiving) openMessage(now Instant, h *protocol.ExtHeader) *inbound {
	m := r.allocate()
	m.number, m.comm, m.tag, m.datatype = h.Message, h.Comm, h.Tag, h.Call.Datatype()
	m.length, m.openedAt, m.prev = int64(h.Length), now, r.last
	m.eager = h.Type == protocol.Data
	if m.eager {
		m.expectedBytes = m.length
		r.eagerBytes += h.Length
	}
	if r.last == nil {
		r.first = m
	} else {
		r.last.next = m
	}
	r.last = m
	if last := r.newest; last != nil {
		r.byNumber.put(last.number, last)
	}
	r.newest = m
	r.nextMessage++
	r.adaptWindow()
	a := r.nextAction()
	a.Kind = Open
	a.Message, a.Comm, a.Tag, a.Length = r.messageID(m.number), h.Comm, h.Tag, int64(h.Length)
	a.Datatype, a.Eager, a.Advertised = m.datatype, m.eager, r.offered && !m.eager
	return m
}

// message returns the caller's identifier of a message.
func (r *receiving) messageID(number uint32) Message {
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
	switch d := int32(h.Message - r.nextMessage); {
	case d < 0:
		if m = r.find(h.Message); m != nil && m.isComplete() {
			return ReasonUnsolicited
		}
	case d > 0 && eager:
		return r.holdPacket(h, payload, missing)
	case eager:
		if reason := r.checkCredit(h); reason != ReasonNone {
			return reason
		}
		m = r.openMessage(now, h)
	}
	if m == nil || !m.eager && !m.accepted {
		return ReasonUnsolicited
	}
	if reason := m.validateData(h, len(payload)); reason != ReasonNone {
		return reason
	}
	m.receivedBytes += int64(len(payload))
	if m.accepted {
		// An eager message may be longer than the receive (E14).
		payload = payload[:max(min(int64(len(payload)), m.capacity-int64(h.Offset)), 0)]
	}
	if len(payload) > 0 {
		a := r.nextAction()
		a.Kind = Copy
		a.Message, a.Offset, a.Payload = r.messageID(m.number), int64(h.Offset), payload
	}
	r.finishIfComplete(m)
	return ReasonNone
}

// arrived reports a message to the caller if it is complete.
func (r *receiving) finishIfComplete(m *inbound) {
	if !m.isComplete() {
		return
	}
	r.stats.MessagesArrived++
	a := r.nextAction()
	a.Kind, a.Message = Arrived, r.messageID(m.number)
	if m.accepted {
		r.acceptedOpen--
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
	r.adaptWindow()
	m.accepted, m.capacity = true, max(room, 0)
	r.acceptedOpen++
	if m.eager {
		if !m.creditReturned {
			r.matchedBytes += uint32(m.length)
		}
		if m.isComplete() {
			r.acceptedOpen--
			r.close(m)
		}
		return acts
	}
	if !fetched {
		m.expectedBytes = min(m.capacity, m.length)
	}
	r.controls.push(control{
		kind: protocol.ClearToSend, call: m.datatype.RecvCall(), message: m.number, length: uint32(m.expectedBytes),
	})
	r.acts = acts
	r.finishIfComplete(m)
	return r.acts
}

// onCancel handles ERROR cancel (E16).
func (r *receiving) onCancel(h *protocol.ExtHeader, missing uint32) Reason {
	if !h.Call.IsSend() {
		return ReasonDirection
	}
	if int32(h.Message-r.nextMessage) >= 0 {
		return r.holdPacket(h, nil, missing)
	}
	m := r.find(h.Message)
	if m == nil {
		if ref := r.resting.get(h.Message); ref == 0 || ref&eagerBit != 0 {
			return ReasonStale
		}
		r.cancelRequests = append(r.cancelRequests, h.Message)
		return ReasonNone
	}
	if m.eager || m.accepted {
		return ReasonStale // CLEAR_TO_SEND answers it, or already has
	}
	if !m.cancelRequested {
		m.cancelRequested = true
		r.cancelRequests = append(r.cancelRequests, m.number)
	}
	return ReasonNone
}

// onAborted handles ERROR aborted.
func (r *receiving) onAborted(h *protocol.ExtHeader) Reason {
	m := r.find(h.Message)
	switch {
	case !h.Call.IsSend():
		return ReasonDirection
	case int32(h.Message-r.nextMessage) >= 0:
		return ReasonUnsolicited
	case m == nil || m.eager || !m.accepted:
		return ReasonStale
	}
	a := r.nextAction()
	a.Kind = Lost
	a.Message, a.Ref, a.Err = r.messageID(m.number), 0, ErrAborted
	r.acceptedOpen--
	r.close(m)
	return ReasonNone
}

// answerCancels answers the cancellations that the peer has requested since the last Flush. They are not answered earlier,
// because only now has the caller handled every Open and matched every message that has a receive.
func (r *receiving) answerCancels() {
	for _, number := range r.cancelRequests {
		m, ref := r.find(number), r.resting.get(number)
		if m == nil && ref == 0 || m != nil && m.accepted {
			continue // CLEAR_TO_SEND answers the request
		}
		a := r.nextAction()
		a.Kind, a.Err = Lost, ErrCanceled
		a.Message, a.Ref = r.messageID(number), 0
		call := protocol.RecvInt
		if m != nil {
			call = m.datatype.RecvCall()
			r.close(m)
		} else {
			if a.Ref = ref & refBits; ref&floatBit != 0 {
				call = protocol.RecvFloat
			}
			removeResting(r.resting, number)
		}
		r.controls.push(control{kind: protocol.Error, call: call, message: number, code: protocol.CodeCanceled})
		r.matched++
		r.adaptWindow()
	}
	r.cancelRequests = r.cancelRequests[:0]
}

// failMessages reports incomplete messages as lost. Complete resting messages are not reported; the caller has all of their
// data.
func (r *receiving) failMessages(e *sessionEnd) {
	for m := r.first; m != nil; m = m.next {
		if !m.isComplete() {
			a := r.nextAction()
			a.Kind = Lost
			a.Message, a.Ref, a.Err = r.messageID(m.number), 0, e.messageError(r.describeWait(m))
		}
	}
	if r.resting.len() > 0 {
		a := r.nextAction()
		a.Kind = LostRests
		a.Err = e.messageError(Wait{State: Announced, Local: r.cfg.Local, Remote: r.cfg.Remote, Since: e.endedAt})
	}
}

func (r *receiving) describeWait(m *inbound) Wait {
	w := Wait{
		Message: r.messageID(m.number), State: Announced, Local: r.cfg.Local, Remote: r.cfg.Remote, Since: m.openedAt,
		Length: m.length, BytesDone: m.receivedBytes,
	}
	switch {
	case m.eager:
		w.State = Arriving
	case m.accepted:
		w.State = Cleared
	}
	return w
}

package extended

import "github.com/zrlmpi/zrlmpid/protocol"

// Accept informs the Conn that a message was matched with a receive of the given capacity in bytes. The Conn returns
// the message's credit to the peer, and sends CLEAR_TO_SEND for an announced message. Accept does nothing for a message
// that no longer exists.
func (c *Conn) Accept(_ Instant, message Message, room int64, acts []Action) []Action {
	return c.recvs.accept(message, room, false, acts)
}

// onRequest handles a SEND_REQUEST (E12). missing is the number of the first missing packet.
func (r *receiving) onRequest(now Instant, header *protocol.ExtHeader, payload []byte, missing uint32) Reason {
	if !header.Call.IsSend() {
		return ReasonDirection
	}
	if len(payload) > 0 || header.Tag > protocol.MaxExtTag {
		return ReasonMismatch
	}
	if header.Message != r.nextMessage {
		return r.holdPacket(header, payload, missing)
	}
	if reason := r.checkCredit(header); reason != ReasonNone {
		return reason
	}
	if int64(header.Length) > r.cfg.MaxLength {
		r.nextMessage++
		r.matched++
		r.adaptWindow()
		r.controls.push(control{
			kind: protocol.Error, call: header.Call.Counterpart(), message: header.Message, code: protocol.CodeTooLong,
		})
		r.note(Refused).Length = int64(header.Length)
		return ReasonNone
	}
	r.openMessage(now, header)
	return ReasonNone
}

// checkCredit returns ReasonCredit if the next message would exceed the limits sent to the peer, and otherwise
// ReasonNone.
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
func (r *receiving) openMessage(now Instant, header *protocol.ExtHeader) *inbound {
	message := r.allocate()
	message.number, message.comm, message.tag, message.datatype = header.Message, header.Comm, header.Tag,
		header.Call.Datatype()
	message.length, message.openedAt, message.prev = int64(header.Length), now, r.last
	message.eager = header.Type == protocol.Data
	if message.eager {
		message.expectedBytes = message.length
		r.eagerBytes += header.Length
	}
	if r.last == nil {
		r.first = message
	} else {
		r.last.next = message
	}
	r.last = message
	if last := r.newest; last != nil {
		r.byNumber.put(last.number, last)
	}
	r.newest = message
	r.nextMessage++
	r.adaptWindow()
	a := r.nextAction()
	a.Kind = Open
	a.Message, a.Comm, a.Tag, a.Length = r.messageID(message.number), header.Comm, header.Tag, int64(header.Length)
	a.Datatype, a.Eager, a.Advertised = message.datatype, message.eager, r.offered && !message.eager
	return message
}

// messageID returns the identifier by which the caller knows a message.
func (r *receiving) messageID(number uint32) Message {
	return Message(uint64(r.epoch)<<32 | uint64(number))
}

// onData handles a DATA packet of an eager (E11) or cleared (E12) message.
func (r *receiving) onData(now Instant, header *protocol.ExtHeader, payload []byte, missing uint32) Reason {
	eager := header.Flags&protocol.FlagEager != 0
	switch end := uint64(header.Offset) + uint64(len(payload)); {
	case !header.Call.IsSend():
		return ReasonDirection
	case end > uint64(header.Length), len(payload) == 0 && header.Length > 0, header.Tag > protocol.MaxExtTag:
		return ReasonMismatch
	}
	var message *inbound
	switch d := int32(header.Message - r.nextMessage); {
	case d < 0:
		if message = r.find(header.Message); message != nil && message.isComplete() {
			return ReasonUnsolicited
		}
	case d > 0 && eager:
		return r.holdPacket(header, payload, missing)
	case eager:
		if reason := r.checkCredit(header); reason != ReasonNone {
			return reason
		}
		message = r.openMessage(now, header)
	}
	if message == nil || !message.eager && !message.accepted {
		return ReasonUnsolicited
	}
	if reason := message.validateData(header, len(payload)); reason != ReasonNone {
		return reason
	}
	message.receivedBytes += int64(len(payload))
	if message.accepted {
		// An eager message may be longer than the receive (E14).
		payload = payload[:max(min(int64(len(payload)), message.capacity-int64(header.Offset)), 0)]
	}
	if len(payload) > 0 {
		a := r.nextAction()
		a.Kind = Copy
		a.Message, a.Offset, a.Payload = r.messageID(message.number), int64(header.Offset), payload
	}
	r.finishIfComplete(message)
	return ReasonNone
}

// finishIfComplete reports a message to the caller as Arrived if it is complete.
func (r *receiving) finishIfComplete(message *inbound) {
	if !message.isComplete() {
		return
	}
	r.stats.MessagesArrived++
	a := r.nextAction()
	a.Kind, a.Message = Arrived, r.messageID(message.number)
	if message.accepted {
		r.acceptedOpen--
		r.close(message)
	}
}

// accept implements Accept and AcceptFetched.
func (r *receiving) accept(message Message, room int64, fetched bool, acts []Action) []Action {
	if uint32(message>>32) != r.epoch {
		return acts
	}
	msg := r.find(message.Number())
	if msg == nil || msg.accepted {
		return acts
	}
	r.changed = true
	r.matched++
	r.adaptWindow()
	msg.accepted, msg.capacity = true, max(room, 0)
	r.acceptedOpen++
	if msg.eager {
		if !msg.creditReturned {
			r.matchedBytes += uint32(msg.length)
		}
		if msg.isComplete() {
			r.acceptedOpen--
			r.close(msg)
		}
		return acts
	}
	if !fetched {
		msg.expectedBytes = min(msg.capacity, msg.length)
	}
	r.controls.push(control{
		kind: protocol.ClearToSend, call: msg.datatype.RecvCall(), message: msg.number, length: uint32(msg.expectedBytes),
	})
	r.acts = acts
	r.finishIfComplete(msg)
	return r.acts
}

// onCancel handles ERROR cancel (E16).
func (r *receiving) onCancel(header *protocol.ExtHeader, missing uint32) Reason {
	if !header.Call.IsSend() {
		return ReasonDirection
	}
	if int32(header.Message-r.nextMessage) >= 0 {
		return r.holdPacket(header, nil, missing)
	}
	message := r.find(header.Message)
	if message == nil {
		if ref := r.resting.get(header.Message); ref == 0 || ref&eagerBit != 0 {
			return ReasonStale
		}
		r.cancelRequests = append(r.cancelRequests, header.Message)
		return ReasonNone
	}
	if message.eager || message.accepted {
		return ReasonStale // CLEAR_TO_SEND answers it, or already has
	}
	if !message.cancelRequested {
		message.cancelRequested = true
		r.cancelRequests = append(r.cancelRequests, message.number)
	}
	return ReasonNone
}

// onAborted handles ERROR aborted.
func (r *receiving) onAborted(h *protocol.ExtHeader) Reason {
	message := r.find(h.Message)
	switch {
	case !h.Call.IsSend():
		return ReasonDirection
	case int32(h.Message-r.nextMessage) >= 0:
		return ReasonUnsolicited
	case message == nil || message.eager || !message.accepted:
		return ReasonStale
	}
	a := r.nextAction()
	a.Kind = Lost
	a.Message, a.Ref, a.Err = r.messageID(message.number), 0, ErrAborted
	r.acceptedOpen--
	r.close(message)
	return ReasonNone
}

// answerCancels answers the cancellations that the peer has requested since the last Flush. It is called only in Flush,
// because by then the caller has matched every opened message that has a posted receive.
func (r *receiving) answerCancels() {
	for _, number := range r.cancelRequests {
		message, ref := r.find(number), r.resting.get(number)
		if message == nil && ref == 0 || message != nil && message.accepted {
			continue // CLEAR_TO_SEND answers the request
		}
		action := r.nextAction()
		action.Kind, action.Err = Lost, ErrCanceled
		action.Message, action.Ref = r.messageID(number), 0
		call := protocol.RecvInt
		if message != nil {
			call = message.datatype.RecvCall()
			r.close(message)
		} else {
			if action.Ref = ref & refBits; ref&floatBit != 0 {
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

// failMessages reports incomplete messages as lost. It does not report resting messages that are complete, because the
// caller holds all of their data.
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

func (r *receiving) describeWait(message *inbound) Wait {
	wait := Wait{
		Message: r.messageID(message.number), State: Announced, Local: r.cfg.Local, Remote: r.cfg.Remote,
		Since:  message.openedAt,
		Length: message.length, BytesDone: message.receivedBytes,
	}
	switch {
	case message.eager:
		wait.State = Arriving
	case message.accepted:
		wait.State = Cleared
	}
	return wait
}

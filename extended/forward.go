package extended

import "github.com/zrlmpi/zrlmpid/protocol"

// A Partial message is sent while its payload is still being received from elsewhere. It is announced at once, and its
// DATA is sent as payload becomes available (E49). On the wire it differs from other messages only in that the sender
// may abort it in the middle.

// FitsEager reports whether a message of the given length may be sent eagerly (E11). Partial messages are never sent
// eagerly.
func (c *Conn) FitsEager(length int64) bool { return length <= int64(c.cfg.EagerLimit) }

// SetReady sets the number of bytes available at the beginning of a Partial message.
func (c *Conn) SetReady(id ID, bytes int64) {
	message := c.sends.find(id)
	if message == nil || bytes <= message.readyBytes {
		return
	}
	message.readyBytes = min(bytes, message.op.Length)
	if message.state == Sending && !message.isListed && message.bytesSent < message.bytesToSend {
		c.sends.listCleared(message)
		c.changed = true
	}
}

// Abort ends a Partial message when the rest of its payload will never be available. SendDone follows, with ErrAborted
// if the peer has cleared the message.
func (c *Conn) Abort(now Instant, id ID, acts []Action) []Action {
	message := c.sends.find(id)
	if message == nil {
		return acts
	}
	c.changed = true
	switch message.state {
	case Queued:
		c.acts = acts
		c.sends.finish(message, ErrCanceled)
		return c.acts
	case WaitClear, Canceling:
		message.aborted = true // in case the peer answers with CLEAR_TO_SEND
		acts, _ = c.Cancel(now, id, acts)
		return acts
	case Sending:
		c.acts = acts
		message.aborted = true
		c.sends.truncate(message)
		return c.acts
	}
	return acts
}

// truncate ends a message after the bytes already sent. It does nothing if all bytes were sent.
func (s *sending) truncate(message *outbound) {
	if message.allSent { // nothing is left to abort
		message.aborted = false
		return
	}
	s.unlistCleared(message)
	message.bytesToSend, message.allSent = message.bytesSent, true
	s.finishIfAcked(message)
}

// endAborted informs the peer that the rest of a message will not be sent. All bytes sent have been acknowledged, so
// none of them can arrive after this ERROR.
func (s *sending) endAborted(m *outbound) {
	s.controls.push(control{
		kind: protocol.Error, call: m.op.Datatype.SendCall(), message: m.number, code: protocol.CodeAborted,
	})
	s.finish(m, ErrAborted)
}

// listCleared appends a message to the list of messages that the peer has cleared.
func (s *sending) listCleared(message *outbound) {
	if s.cleared == nil {
		s.cleared = message
	} else {
		s.clearedLast.nextCleared = message
	}
	s.clearedLast, message.isListed = message, true
}

// unlistCleared removes a message from the list of messages that the peer has cleared.
func (s *sending) unlistCleared(message *outbound) {
	if !message.isListed {
		return
	}
	message.isListed = false
	var before *outbound
	for o := s.cleared; o != message; o = o.nextCleared {
		before = o
	}
	if before == nil {
		s.cleared = message.nextCleared
	} else {
		before.nextCleared = message.nextCleared
	}
	if s.clearedLast == message {
		s.clearedLast = before
	}
	message.nextCleared = nil
}

// sendableBytes returns the number of further bytes of a message that can be sent now.
func (m *outbound) sendableBytes() int64 {
	if m.op.Partial {
		return min(m.bytesToSend, m.readyBytes) - m.bytesSent
	}
	return m.bytesToSend - m.bytesSent
}

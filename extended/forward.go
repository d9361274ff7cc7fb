package extended

import "github.com/zrlmpi/zrlmpid/protocol"

// A Partial message is sent while its payload is still being received from elsewhere. It is announced at once, and its
// DATA is sent as payload becomes available (E49). On the wire it differs from other messages only in that the sender
// may abort it in the middle.

// FitsEager reports whether a message of the given length may be sent eagerly (E11). Partial messages are never sent
// eagerly.
func (c *Conn) FitsEager(length int64) bool { return length <= int64(c.cfg.EagerLimit) }

// SetReady sets the number of bytes at the beginning of a Partial message that are available.
func (c *Conn) SetReady(id ID, bytes int64) {
	m := c.sends.find(id)
	if m == nil || bytes <= m.readyBytes {
		return
	}
	m.readyBytes = min(bytes, m.op.Length)
	if m.state == Sending && !m.isListed && m.bytesSent < m.bytesToSend {
		c.sends.listCleared(m)
		c.changed = true
	}
}

// Abort ends a Partial message when the rest of its payload will never be available. SendDone follows, with ErrAborted
// if the peer has cleared the message.
func (c *Conn) Abort(now Instant, id ID, acts []Action) []Action {
	m := c.sends.find(id)
	if m == nil {
		return acts
	}
	c.changed = true
	switch m.state {
	case Queued:
		c.acts = acts
		c.sends.finish(m, ErrCanceled)
		return c.acts
	case WaitClear, Canceling:
		m.aborted = true // in case the peer answers with CLEAR_TO_SEND
		acts, _ = c.Cancel(now, id, acts)
		return acts
	case Sending:
		c.acts = acts
		m.aborted = true
		c.sends.truncate(m)
		return c.acts
	}
	return acts
}

// truncate ends a message after the bytes already sent. It does nothing if all bytes were sent.
func (s *sending) truncate(m *outbound) {
	if m.allSent { // all of it was sent, so there is nothing to abort
		m.aborted = false
		return
	}
	s.unlistCleared(m)
	m.bytesToSend, m.allSent = m.bytesSent, true
	s.finishIfAcked(m)
}

// endAborted informs the peer that the rest of a message will not be sent. All bytes sent have been acknowledged, so
// none of them can arrive after this ERROR.
func (s *sending) endAborted(m *outbound) {
	s.controls.push(control{
		kind: protocol.Error, call: m.op.Datatype.SendCall(), message: m.number, code: protocol.CodeAborted,
	})
	s.finish(m, ErrAborted)
}

// listCleared appends a message to the list of cleared messages.
func (s *sending) listCleared(m *outbound) {
	if s.cleared == nil {
		s.cleared = m
	} else {
		s.clearedLast.nextCleared = m
	}
	s.clearedLast, m.isListed = m, true
}

// unlistCleared removes a message from the list of cleared messages.
func (s *sending) unlistCleared(m *outbound) {
	if !m.isListed {
		return
	}
	m.isListed = false
	var before *outbound
	for o := s.cleared; o != m; o = o.nextCleared {
		before = o
	}
	if before == nil {
		s.cleared = m.nextCleared
	} else {
		before.nextCleared = m.nextCleared
	}
	if s.clearedLast == m {
		s.clearedLast = before
	}
	m.nextCleared = nil
}

// sendableBytes returns the number of further bytes of a message that can be sent now.
func (m *outbound) sendableBytes() int64 {
	if m.op.Partial {
		return min(m.bytesToSend, m.readyBytes) - m.bytesSent
	}
	return m.bytesToSend - m.bytesSent
}

package extended

import "github.com/zrlmpi/zrlmpid/protocol"

// A Partial message is sent while its payload is still being received from elsewhere. It is announced at once, and its
// DATA is sent as payload becomes available (E49). On the wire it differs from other messages only in that the sender
// may abort it in the middle.

// Short reports whether a message of the given length may be sent eagerly (E11). Partial messages are never sent
// eagerly.
func (c *Conn) Short(length int64) bool { return length <= int64(c.cfg.EagerLimit) }

// Ready sets the number of bytes at the beginning of a Partial message that are available.
func (c *Conn) Ready(id ID, bytes int64) {
	m := c.sends.find(id)
	if m == nil || bytes <= m.ready {
		return
	}
	m.ready = min(bytes, m.op.Length)
	if m.state == Sending && !m.listed && m.offset < m.take {
		c.sends.list(m)
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
		c.sends.done(m, ErrCanceled)
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
	if m.out { // all of it was sent, so there is nothing to abort
		m.aborted = false
		return
	}
	s.unlist(m)
	m.take, m.out = m.offset, true
	s.doneIfAcked(m)
}

// endAborted informs the peer that the rest of a message will not be sent. All bytes sent have been acknowledged, so
// none of them can arrive after this ERROR.
func (s *sending) endAborted(m *outbound) {
	s.controls.push(control{
		kind: protocol.Error, call: m.op.Datatype.Send(), message: m.number, code: protocol.CodeAborted,
	})
	s.done(m, ErrAborted)
}

// list appends a message to the list of cleared messages.
func (s *sending) list(m *outbound) {
	if s.cleared == nil {
		s.cleared = m
	} else {
		s.clearedLast.behind = m
	}
	s.clearedLast, m.listed = m, true
}

// unlist removes a message from the list of cleared messages.
func (s *sending) unlist(m *outbound) {
	if !m.listed {
		return
	}
	m.listed = false
	var before *outbound
	for o := s.cleared; o != m; o = o.behind {
		before = o
	}
	if before == nil {
		s.cleared = m.behind
	} else {
		before.behind = m.behind
	}
	if s.clearedLast == m {
		s.clearedLast = before
	}
	m.behind = nil
}

// there returns the number of further bytes of a message that can be sent now.
func (m *outbound) there() int64 {
	if m.op.Partial {
		return min(m.take, m.ready) - m.offset
	}
	return m.take - m.offset
}

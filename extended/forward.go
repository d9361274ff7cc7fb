package extended

import "github.com/zrlmpi/zrlmpid/protocol"

// A message may be sent while its payload is still arriving from somewhere else: it is
// announced at once, and its DATA follows what there is (E49). The wire knows nothing of
// it but that a sender may abort it in the middle.

// Short reports whether a message of so many bytes may go eagerly (E11). One that is
// sent while it arrives never does.
func (c *Conn) Short(length int64) bool { return length <= int64(c.cfg.EagerLimit) }

// Ready says how many bytes of a Partial message there are by now, from its beginning.
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

// Abort ends a Partial message whose rest will never come. SendDone follows, with
// ErrAborted if the peer had asked for it.
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
		m.aborted = true // if the answer is CLEAR_TO_SEND
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

// truncate ends a message with what was sent of it.
func (s *sending) truncate(m *outbound) {
	if m.out { // all of it: there is nothing to abort
		m.aborted = false
		return
	}
	s.unlist(m)
	m.take, m.out = m.offset, true
	s.doneIfAcked(m)
}

// endAborted reports to the peer that the rest of a message does not come. What was sent of it
// has arrived, so that nothing of it comes after this.
func (s *sending) endAborted(m *outbound) {
	s.controls.push(control{
		kind: protocol.Error, call: m.op.Datatype.Send(), message: m.number, code: protocol.CodeAborted,
	})
	s.done(m, ErrAborted)
}

// list puts a message behind those whose DATA was asked for.
func (s *sending) list(m *outbound) {
	if s.cleared == nil {
		s.cleared = m
	} else {
		s.clearedLast.behind = m
	}
	s.clearedLast, m.listed = m, true
}

// unlist takes it out again, wherever it stands.
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

// there is how many bytes of a message may be sent now.
func (m *outbound) there() int64 {
	if m.op.Partial {
		return min(m.take, m.ready) - m.offset
	}
	return m.take - m.offset
}

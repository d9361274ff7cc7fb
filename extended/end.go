package extended

// ending says why everything that had begun ends.
type ending uint8

const (
	endReplaced ending = iota + 1 // E8
	endClosed                     // E9
	endDied                       // E9
	endSilent                     // E31
	endUnreachable
)

// endMessages ends every message that has begun and is not complete, in both
// directions, and begins a new pair of sessions with those that are queued.
func (c *Conn) endMessages(now Instant, why ending) {
	c.lengthen()
	for m := c.sends.first; m != c.sends.queued; {
		next := m.after
		c.done(m, c.failure(now, why, c.sendWait(m)))
		m = next
	}
	c.endRestingSends(now, why)
	for m := c.recvs.first; m != nil; m = m.after {
		if !m.complete() {
			c.stats.Lost++
			a := c.next()
			a.Kind = Lost
			a.Message, a.Ref, a.Err = c.message(m), 0, c.failure(now, why, c.recvWait(m))
		}
	}
	c.lostRests(now, why)
	c.reset()
}

// failure is the error of one message.
func (c *Conn) failure(now Instant, why ending, w Wait) error {
	elapsed := now - w.Since
	switch why {
	case endSilent:
		return &TimeoutError{Wait: w, Elapsed: elapsed, Silent: now - c.silence()}
	case endUnreachable:
		return &TimeoutError{Wait: w, Elapsed: elapsed} // Unreachable adds the reason
	}
	return &SessionError{Wait: w, Elapsed: elapsed, Closed: why == endClosed, Died: why == endDied, Job: c.cfg.Job}
}

// silence is since when the peer has not helped.
func (c *Conn) silence() Instant {
	if c.flight.outstanding() > 0 {
		return c.moved
	}
	return c.session.lastHeardAt
}

func (c *Conn) sendWait(m *outbound) Wait {
	return Wait{
		ID: m.op.ID, State: m.state, Local: c.cfg.Local, Remote: c.cfg.Remote, Since: m.since,
		Length: m.op.Length, Done: m.acked, Retransmissions: m.retransmissions,
	}
}

func (c *Conn) recvWait(m *inbound) Wait {
	w := Wait{
		Message: c.message(m), State: Announced, Local: c.cfg.Local, Remote: c.cfg.Remote, Since: m.since,
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

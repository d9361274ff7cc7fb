package extended

import "time"

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
func (c *Conn) endMessages(now Instant, why ending) sessionEnd {
	c.lengthen()
	e := c.sessionEnd(now, why)
	c.sends.end(&e, c.sends.queued)
	c.sends.endResting(&e)
	c.recvs.end(&e)
	c.reset()
	return e
}

// sessionEnd describes the end of a session, for the errors of its messages.
type sessionEnd struct {
	why    ending
	now    Instant
	silent time.Duration // time for which the peer did not help
	job    bool          // the peer is a rank of our job
}

func (c *Conn) sessionEnd(now Instant, why ending) sessionEnd {
	return sessionEnd{why, now, now - c.silence(), c.cfg.Job}
}

// failure returns the error of one message.
func (e *sessionEnd) failure(w Wait) error {
	elapsed := e.now - w.Since
	switch e.why {
	case endSilent:
		return &TimeoutError{Wait: w, Elapsed: elapsed, Silent: e.silent}
	case endUnreachable:
		return &TimeoutError{Wait: w, Elapsed: elapsed} // Unreachable adds the reason
	}
	return &SessionError{Wait: w, Elapsed: elapsed, Closed: e.why == endClosed, Died: e.why == endDied, Job: e.job}
}

// silence is since when the peer has not helped.
func (c *Conn) silence() Instant {
	if c.path.flight.outstanding() > 0 {
		return c.path.moved
	}
	return c.session.lastHeardAt
}

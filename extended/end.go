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
func (c *Conn) endMessages(now Instant, why ending) end {
	c.lengthen()
	e := c.ends(now, why)
	c.sends.end(&e, c.sends.queued)
	c.sends.endResting(&e)
	c.recvs.end(&e)
	c.reset()
	return e
}

// end is when and why what had begun ends.
type end struct {
	why    ending
	now    Instant
	silent time.Duration // how long the peer has not helped
	job    bool
}

func (c *Conn) ends(now Instant, why ending) end { return end{why, now, now - c.silence(), c.cfg.Job} }

// failure is the error of one message.
func (e *end) failure(w Wait) error {
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

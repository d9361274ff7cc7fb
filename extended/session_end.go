package extended

import "time"

// ending is the reason why the messages in progress are ended.
type ending uint8

const (
	// endReplaced: the peer has begun another session (E8).
	endReplaced ending = iota + 1
	// endClosed: the peer sent close, or its transport shut down in order (E9).
	endClosed
	// endDied: the peer's process ended without close (E9).
	endDied
	// endSilent: the peer acknowledged nothing for too long (E31).
	endSilent
	// endUnreachable: the transport reported that it cannot reach the peer.
	endUnreachable
)

// endMessages ends all messages that have begun but are not complete, in both directions. It then begins a new pair of
// sessions, for which queued messages wait.
func (c *Conn) endMessages(now Instant, why ending) sessionEnd {
	c.convertShorts()
	e := c.sessionEnd(now, why)
	c.sends.failMessages(&e, c.sends.queued)
	c.sends.endResting(&e)
	c.recvs.failMessages(&e)
	c.reset()
	return e
}

// sessionEnd describes how a session ended. The errors of its messages are derived from it.
type sessionEnd struct {
	reason    ending
	endedAt   Instant
	silentFor time.Duration // time without an answer from the peer
	job       bool          // the peer is a rank of our job
}

func (c *Conn) sessionEnd(now Instant, why ending) sessionEnd {
	return sessionEnd{why, now, now - c.silentSince(), c.cfg.Job}
}

// messageError returns the error that a message receives when its session ends.
func (e *sessionEnd) messageError(wait Wait) error {
	elapsed := e.endedAt - wait.Since
	switch e.reason {
	case endSilent:
		return &TimeoutError{Wait: wait, Elapsed: elapsed, Silent: e.silentFor}
	case endUnreachable:
		return &TimeoutError{Wait: wait, Elapsed: elapsed} // Conn.Unreachable adds the reason
	}
	return &SessionError{Wait: wait, Elapsed: elapsed, Closed: e.reason == endClosed, Died: e.reason == endDied,
		Job: e.job}
}

// silentSince returns the time since which the peer has been silent: the time of its last acknowledgement while packets
// are outstanding, and otherwise of its last packet.
func (c *Conn) silentSince() Instant {
	if c.path.flight.outstanding() > 0 {
		return c.path.lastAckAt
	}
	return c.session.lastPacketAt
}

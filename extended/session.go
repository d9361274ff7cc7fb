package extended

import (
	"errors"
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// session holds the sessions of this rank and of its peer (E5–E9).
type session struct {
	// local is the number of our session, and remote that of the peer's session, or 0 while it is unknown.
	local, remote protocol.Session
	// endedSessions is a ring of the peer's sessions that ended most recently, while ours continued. endedCount counts
	// all sessions that so ended.
	endedSessions [4]protocol.Session
	endedCount    uint8
	// greetPeer is set if no ACK has been sent yet to the peer's session, which was newly adopted.
	greetPeer bool
	// helloNow is set if a HELLO is due even though nothing is waiting to be sent: the peer may have been restarted, or
	// runs another version.
	helloNow bool

	// nextHello is the earliest time at which the next HELLO is sent. helloInterval is the interval between that HELLO
	// and the one after it.
	nextHello, helloInterval Instant
	lastPacketAt             Instant // when a packet from the peer was last received
	unansweredHellos         int32   // HELLOs sent since then
	// answerTo is the peer's session to which the number of our session must still be sent, or 0 (E6). answerClock is
	// the clock value in the HELLO to be answered, or 0.
	answerClock uint32
	answerTo    protocol.Session
}

func (s *session) hasEnded(peer protocol.Session) bool {
	return slices.Contains(s.endedSessions[:], peer)
}

// end records the end of the peer's session.
func (s *session) end() {
	s.endedSessions[int(s.endedCount)%len(s.endedSessions)] = s.remote
	s.endedCount++
	s.remote = 0
}

// isSilent reports whether the peer, whose session is known, has answered none of our HELLOs for the given time (E33).
func (s *session) isSilent(now, after Instant) bool {
	return s.remote != 0 && s.unansweredHellos >= minStalls && after > 0 && now-s.lastPacketAt >= after
}

// identify handles a packet whose sessions differ from the known ones. It reports whether the packet is addressed to
// our session and comes from a valid session of the peer, which it then adopts (E6, E8).
func (c *Conn) identify(now Instant, header *protocol.ExtHeader) bool {
	sess := &c.session
	hello := header.Flags&protocol.FlagHello != 0
	if header.Session == 0 || sess.hasEnded(header.Session) {
		return false
	}
	if header.PeerSession != sess.local {
		if header.Type != protocol.Ack || hello {
			sess.answerTo, sess.answerClock = header.Session, 0
			if hello {
				sess.answerClock = header.Clock
			}
		}
		return false
	}
	if sess.remote != 0 {
		c.note(SessionChanged)
		sess.end()
		c.endMessages(now, endReplaced)
	}
	sess.remote = header.Session
	sess.nextHello, sess.helloInterval, sess.unansweredHellos = now, c.cfg.Timing.HelloFirst, 0
	// The peer may know only the number of our session.
	c.arrivals.ackNow, c.arrivals.needsFullAck, sess.greetPeer = true, true, true
	c.note(Connected)
	c.path.askLink(now)
	return true
}

// onClose handles the peer's close (E9).
func (c *Conn) onClose(now Instant) {
	c.note(ClosedByPeer)
	c.endSession(now, endClosed)
}

// ProcessEnded informs a Conn that the transport has detected the end of the peer's process (E9).
func (c *Conn) ProcessEnded(now Instant, acts []Action) []Action {
	c.acts, c.changed = acts, true
	c.path.stampShorts(now)
	c.note(ProcessEnded)
	if c.session.remote != 0 || c.cfg.Job {
		c.endSession(now, endDied)
	}
	return c.acts
}

// ProcessClosed informs a Conn that the transport has detected an orderly shutdown of the peer (E9). A peer without a
// session cannot send close, so only the transport shows its shutdown.
func (c *Conn) ProcessClosed(now Instant, acts []Action) []Action {
	c.acts, c.changed = acts, true
	c.path.stampShorts(now)
	c.onClose(now)
	return c.acts
}

// endSession ends the peer's session and the messages begun in it. Later messages wait for a new session, unless the
// peer will not return.
func (c *Conn) endSession(now Instant, why ending) {
	if c.session.remote != 0 {
		c.session.end()
	}
	e := c.endMessages(now, why)
	c.session.nextHello = now + c.random.jitter(c.cfg.Timing.HelloFirst)
	if c.cfg.Job {
		c.peerGone = why
		c.sends.failMessages(&e, nil)
	}
}

// PeerGone reports whether the process of the peer, a rank of our job, is gone, and whether it closed its session
// first.
func (c *Conn) PeerGone() (left, closed bool) { return c.peerGone != 0, c.peerGone == endClosed }

// declareUnreachable ends our session because the peer is unreachable (E31). From then on, packets that name the old
// session are invalid.
func (c *Conn) declareUnreachable(now Instant, why ending) {
	c.note(Unreachable)
	e := c.endMessages(now, why)
	if why == endUnreachable { // queued messages would wait for a session forever
		c.sends.failMessages(&e, nil)
	}
	// The peer's ended sessions need not be remembered, because their packets name our old session. The peer's current
	// session may continue.
	c.session = session{local: c.random.newSession(c.session.local), nextHello: now,
		helloInterval: c.cfg.Timing.HelloFirst}
}

// Unreachable informs a Conn that the transport cannot reach the peer, for the given reason. It also ends messages that
// are waiting for a session.
func (c *Conn) Unreachable(now Instant, reason string, acts []Action) []Action {
	if c.closed {
		return acts
	}
	c.acts, c.changed = acts, true
	c.path.stampShorts(now)
	before := len(c.acts)
	c.declareUnreachable(now, endUnreachable)
	for i := range c.acts[before:] {
		if err, ok := errors.AsType[*TimeoutError](c.acts[before+i].Err); ok {
			err.Reason = reason
		}
	}
	return c.acts
}

// Close sends close to the peer, because this rank is shutting down (E9). Until the time that LingerUntil returns,
// Flush answers further packets from the peer with close again. After Close, the Conn does nothing else.
func (c *Conn) Close(now Instant, acts []Action) []Action {
	if c.closed {
		return acts
	}
	c.closed, c.changed, c.closedAt = true, true, now
	c.acts = acts
	if c.reports.isAsking() {
		c.reports.finish(&c.common, nil, ErrNoReport)
	}
	if c.session.remote == 0 {
		return c.acts
	}
	if c.arrivals.hasGaps() {
		c.ackBuf = c.ackBuf[:0]
		c.sendAck(now) // close acknowledges only packets received in order
	}
	c.sendClose()
	return c.acts
}

// onClosed handles a packet that arrives from the peer's session after Close.
func (c *Conn) onClosed(now Instant, h *protocol.ExtHeader) {
	switch {
	case h.Type == protocol.Error && !h.IsNumbered():
		c.note(ClosedByPeer)
		c.session.end()
	case h.Type != protocol.Ack || h.Flags&protocol.FlagHello != 0:
		// The peer has not received our close yet.
		c.arrivals.newestAt, c.closeDue = now, true
	}
}

// lingerTimeouts is the number of timeouts for which a Conn answers the peer after Close (RFC 9000, section 10.2).
// minLinger is the minimum duration: on a busy host, the peer's process may not run for several times a timeout of a
// few milliseconds.
const (
	lingerTimeouts = 3
	minLinger      = 150 * time.Millisecond
)

// LingerUntil returns the time until which the peer may retransmit packets because both our acknowledgement and our
// close were lost. It returns false before Close, and if the peer will not retransmit. The time is three timeouts, but
// at least 150 ms, after the last packet from the peer, and at most three of the longest timeouts after Close.
func (c *Conn) LingerUntil() (Instant, bool) {
	if !c.closed || c.cfg.Reliable || c.session.remote == 0 ||
		c.arrivals.firstMissing == c.cfg.firstPacket && !c.arrivals.hasGaps() {
		return 0, false
	}
	after := max(lingerTimeouts*c.path.rtt.rto, minLinger)
	return min(c.arrivals.newestAt+after, c.closedAt+lingerTimeouts*c.cfg.Timing.MaxRTO), true
}

// sendClose transmits ERROR close. It is not numbered (E3), and is repeated only in answer to packets from the peer.
func (c *Conn) sendClose() {
	h := c.header(protocol.Error, protocol.SendInt)
	h.Tag = uint32(protocol.CodeClose)
	c.transmitUnnumbered(Transmit, &h, nil)
}

// reset begins a new pair of sessions, in which nothing is in flight.
func (c *Conn) reset() {
	c.session.helloInterval = c.cfg.Timing.HelloFirst
	c.path.reset()
	c.controls.reset()
	c.arrivals.reset(c.cfg.firstPacket, max(c.cfg.Window, shortWindow))
	c.sends.reset()
	c.recvs.reset()
	c.reports.reset()
}

// helloDue returns the time of the next HELLO (E7, E33), or never.
func (c *Conn) helloDue() Instant {
	sess := &c.session
	if sess.remote != 0 && !c.path.flight.empty() {
		if c.path.rtt.isMeasured() {
			return never // retransmissions also make the peer answer
		}
		return sess.nextHello // the first timeout is long
	}
	if sess.remote == 0 && c.reports.isAsking() {
		return sess.nextHello
	}
	if c.sends.numPending() == 0 && c.recvs.acceptedOpen == 0 && !c.sends.creditWanted {
		return never
	}
	queued := c.sends.queued != nil || c.sends.creditWanted
	switch {
	case sess.remote == 0 && queued:
		return sess.nextHello
	case sess.remote == 0:
		return never
	case queued && c.sends.messageLimit == c.cfg.firstMessage:
		return sess.nextHello // no limit was received yet
	case queued:
		return max(sess.nextHello, sess.lastPacketAt+c.cfg.Timing.HelloFirst)
	}
	return max(sess.nextHello, sess.lastPacketAt+c.cfg.Timing.HelloMax)
}

// sendDueHellos sends a HELLO and an answer to the peer's HELLO, if they are due (E6).
func (c *Conn) sendDueHellos(now Instant) {
	sess := &c.session
	if ask := sess.helloNow; ask || now >= c.helloDue() {
		sess.helloNow = false
		// While packets are in flight, their timeouts decide whether the peer is unreachable (E31).
		if now >= c.helloDue() && c.path.flight.empty() && sess.isSilent(now, c.cfg.Timing.UnreachableAfter) {
			c.declareUnreachable(now, endSilent)
		}
		if ask || now >= c.helloDue() {
			c.transmitHello(now)
		}
	}
	if sess.answerTo == 0 {
		return
	}
	header := c.header(protocol.Ack, protocol.RecvInt)
	header.Clock = sess.answerClock
	if sess.answerTo == sess.remote {
		c.appendAck(now, &header)
	} else { // nothing was exchanged with that session yet
		header.PeerSession, header.Acknowledged, header.Length = sess.answerTo, c.cfg.firstPacket, c.arrivals.window
		c.transmitAck(&header, &protocol.AckInfo{
			MessageLimit: c.cfg.firstMessage + uint32(c.cfg.Messages), EagerLimit: uint32(c.cfg.EagerBytes),
		})
	}
	sess.answerTo = 0
}

// transmitHello transmits HELLO (E7), and doubles the interval before the next one, up to Timing.HelloMax.
func (c *Conn) transmitHello(now Instant) {
	sess := &c.session
	header := c.header(protocol.Ack, protocol.RecvInt)
	header.Flags |= protocol.FlagHello
	header.Clock = clockAt(now)
	sess.nextHello = now + c.random.jitter(sess.helloInterval)
	sess.helloInterval = min(2*sess.helloInterval, c.cfg.Timing.HelloMax)
	sess.unansweredHellos++
	c.stats.Hellos++
	c.appendAck(now, &header)
}

package extended

import (
	"errors"
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// session holds our session and the peer's (E5–E9).
type session struct {
	// local is our session, and remote the peer's, or 0 while it is unknown.
	local, remote protocol.Session
	// past holds the peer's most recent sessions that ended during our session. pastNext counts them; modulo the length
	// of past, it is the next index to overwrite.
	past     [4]protocol.Session
	pastNext uint8
	// greet is set if the next ACK is the first one sent to a newly adopted session.
	greet bool
	// ask is set if a HELLO is due even though nothing is waiting to be sent: the peer may have been restarted, or runs
	// another version.
	ask bool

	// hello is the earliest time of the next HELLO, and wait the interval from that HELLO to the one after it.
	hello, wait      Instant
	lastHeardAt      Instant // when a packet from the peer was last received
	unansweredHellos int32   // HELLOs sent since then
	// answer is the peer's session to which we must send our session, or 0 if there is none (E6). answerClock is the
	// clock value in the peer's HELLO, or 0.
	answerClock uint32
	answer      protocol.Session
}

func (s *session) ended(peer protocol.Session) bool { return slices.Contains(s.past[:], peer) }

// end records that the peer's session has ended.
func (s *session) end() {
	s.past[int(s.pastNext)%len(s.past)] = s.remote
	s.pastNext++
	s.remote = 0
}

// silent reports whether the peer, whose session is known, has answered none of our HELLOs for the given time (E33).
func (s *session) silent(now, after Instant) bool {
	return s.remote != 0 && s.unansweredHellos >= minStalls && after > 0 && now-s.lastHeardAt >= after
}

// identify handles a packet whose sessions differ from the known ones. It reports whether the packet is addressed to
// our session and comes from a valid session of the peer, which it then adopts (E6, E8).
func (c *Conn) identify(now Instant, h *protocol.ExtHeader) bool {
	s := &c.session
	hello := h.Flags&protocol.FlagHello != 0
	if h.Session == 0 || s.ended(h.Session) {
		return false
	}
	if h.PeerSession != s.local {
		if h.Type != protocol.Ack || hello {
			s.answer, s.answerClock = h.Session, 0
			if hello {
				s.answerClock = h.Clock
			}
		}
		return false
	}
	if s.remote != 0 {
		c.note(SessionChanged)
		s.end()
		c.endMessages(now, endReplaced)
	}
	s.remote = h.Session
	s.hello, s.wait, s.unansweredHellos = now, c.cfg.Timing.HelloFirst, 0
	// The peer may know nothing but the number of our session.
	c.arrivals.now, c.arrivals.full, s.greet = true, true, true
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
	c.path.timeShorts(now)
	c.note(ProcessEnded)
	if c.session.remote != 0 || c.cfg.Job {
		c.endSession(now, endDied)
	}
	return c.acts
}

// ProcessClosed informs a Conn that the transport has detected an orderly shutdown of the peer (E9). It is needed
// because a peer without a session cannot send close.
func (c *Conn) ProcessClosed(now Instant, acts []Action) []Action {
	c.acts, c.changed = acts, true
	c.path.timeShorts(now)
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
	c.session.hello = now + c.random.jitter(c.cfg.Timing.HelloFirst)
	if c.cfg.Job {
		c.left = why
		c.sends.end(&e, nil)
	}
}

// Left reports whether the process of the peer, a rank of our job, is gone, and whether it closed its session first.
func (c *Conn) Left() (left, closed bool) { return c.left != 0, c.left == endClosed }

// declareUnreachable ends our session because the peer is unreachable (E31). From then on, packets that name the old
// session are invalid.
func (c *Conn) declareUnreachable(now Instant, why ending) {
	c.note(Unreachable)
	e := c.endMessages(now, why)
	if why == endUnreachable { // queued messages would wait for a session forever
		c.sends.end(&e, nil)
	}
	// The peer's ended sessions need not be remembered, because their packets name our old session. The peer's current
	// session may continue.
	c.session = session{local: c.random.session(c.session.local), hello: now, wait: c.cfg.Timing.HelloFirst}
}

// Unreachable informs a Conn that the transport cannot reach the peer, for the given reason. It also ends messages that
// are waiting for a session.
func (c *Conn) Unreachable(now Instant, reason string, acts []Action) []Action {
	if c.closed {
		return acts
	}
	c.acts, c.changed = acts, true
	c.path.timeShorts(now)
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
	if c.reports.asks() {
		c.reports.finish(&c.common, nil, ErrNoReport)
	}
	if c.session.remote == 0 {
		return c.acts
	}
	if c.arrivals.gaps() {
		c.ackBuf = c.ackBuf[:0]
		c.sendAck(now) // close acknowledges only packets received in order
	}
	c.sendClose()
	return c.acts
}

// onClosed handles a packet that arrives from the peer's session after Close.
func (c *Conn) onClosed(now Instant, h *protocol.ExtHeader) {
	switch {
	case h.Type == protocol.Error && !h.Numbered():
		c.note(ClosedByPeer)
		c.session.end()
	case h.Type != protocol.Ack || h.Flags&protocol.FlagHello != 0:
		// The peer does not know that we have closed.
		c.arrivals.newest, c.closeDue = now, true
	}
}

// lingerTimeOuts is how long, in our time-outs, a Conn answers the peer after Close (RFC 9000, section 10.2).
// lingerLeast is the minimum duration: on a busy host, the peer's process may not run for several times a time-out of a
// few milliseconds.
const (
	lingerTimeOuts = 3
	lingerLeast    = 150 * time.Millisecond
)

// LingerUntil returns the time until which the peer may retransmit packets because both our acknowledgement and our
// close were lost. It returns false before Close, and if the peer will not retransmit. The time is three time-outs, but
// at least 150 ms, after the last packet from the peer, and at most three of the longest time-outs after Close.
func (c *Conn) LingerUntil() (Instant, bool) {
	if !c.closed || c.cfg.Reliable || c.session.remote == 0 ||
		c.arrivals.next == c.cfg.firstPacket && !c.arrivals.gaps() {
		return 0, false
	}
	after := max(lingerTimeOuts*c.path.trip.rto, lingerLeast)
	return min(c.arrivals.newest+after, c.closedAt+lingerTimeOuts*c.cfg.Timing.MaxRTO), true
}

func (c *Conn) sendClose() {
	h := c.header(protocol.Error, protocol.SendInt)
	h.Tag = uint32(protocol.CodeClose)
	c.transmitUnnumbered(Transmit, &h, nil)
}

// reset begins a new pair of sessions, with nothing in flight.
func (c *Conn) reset() {
	c.session.wait = c.cfg.Timing.HelloFirst
	c.path.reset()
	c.controls.reset()
	c.arrivals.reset(c.cfg.firstPacket, max(c.cfg.Window, shortWindow))
	c.sends.reset()
	c.recvs.reset()
	c.reports.reset()
}

// helloDue returns the time of the next HELLO (E7, E33), or never.
func (c *Conn) helloDue() Instant {
	s := &c.session
	if s.remote != 0 && !c.path.flight.empty() {
		if c.path.trip.known() {
			return never // retransmissions also make the peer answer
		}
		return s.hello // the first time-out is long
	}
	if s.remote == 0 && c.reports.asks() {
		return s.hello
	}
	if c.sends.open() == 0 && c.recvs.waiting == 0 && !c.sends.wanted {
		return never
	}
	queued := c.sends.queued != nil || c.sends.wanted
	switch {
	case s.remote == 0 && queued:
		return s.hello
	case s.remote == 0:
		return never
	case queued && c.sends.limit == c.cfg.firstMessage:
		return s.hello // no limit was received yet
	case queued:
		return max(s.hello, s.lastHeardAt+c.cfg.Timing.HelloFirst)
	}
	return max(s.hello, s.lastHeardAt+c.cfg.Timing.HelloMax)
}

// sendHello sends a HELLO and an answer to the peer's HELLO, if they are due (E6).
func (c *Conn) sendHello(now Instant) {
	s := &c.session
	if ask := s.ask; ask || now >= c.helloDue() {
		s.ask = false
		// While packets are in flight, their time-outs decide whether the peer is unreachable (E31).
		if now >= c.helloDue() && c.path.flight.empty() && s.silent(now, c.cfg.Timing.UnreachableAfter) {
			c.declareUnreachable(now, endSilent)
		}
		if ask || now >= c.helloDue() {
			c.hello(now)
		}
	}
	if s.answer == 0 {
		return
	}
	h := c.header(protocol.Ack, protocol.RecvInt)
	h.Clock = s.answerClock
	if s.answer == s.remote {
		c.appendAck(now, &h)
	} else { // nothing was exchanged with that session yet
		h.PeerSession, h.Acknowledged, h.Length = s.answer, c.cfg.firstPacket, c.arrivals.window
		c.transmitAck(&h, &protocol.AckInfo{
			MessageLimit: c.cfg.firstMessage + uint32(c.cfg.Messages), EagerLimit: uint32(c.cfg.EagerBytes),
		})
	}
	s.answer = 0
}

func (c *Conn) hello(now Instant) {
	s := &c.session
	h := c.header(protocol.Ack, protocol.RecvInt)
	h.Flags |= protocol.FlagHello
	h.Clock = clockAt(now)
	s.hello = now + c.random.jitter(s.wait)
	s.wait = min(2*s.wait, c.cfg.Timing.HelloMax)
	s.unansweredHellos++
	c.stats.Hellos++
	c.appendAck(now, &h)
}

package extended

import (
	"errors"
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// session is the pair of sessions of both ranks (E5–E9).
type session struct {
	// local and remote are the sessions of both sides; remote is 0 while it
	// is not known.
	local, remote protocol.Session
	// past are sessions of the peer that ended during our own, pastNext the
	// one that is to be overwritten next.
	past     [4]protocol.Session
	pastNext uint8
	// greet: the next ACK is the first to a session that was adopted.
	greet bool
	// ask: a HELLO is due, whatever waits to be sent: the peer may have been restarted, or
	// is of another version.
	ask bool

	// hello is the time before which no HELLO is sent, and wait how long
	// after the next one the one after that comes.
	hello, wait      Instant
	lastHeardAt      Instant // when a packet of the peer last arrived
	unansweredHellos int32   // HELLOs since then
	// answer is the session of the peer that is to be sent ours, if any (E6), and
	// answerClock the clock of its HELLO.
	answerClock uint32
	answer      protocol.Session
}

func (s *session) ended(peer protocol.Session) bool { return slices.Contains(s.past[:], peer) }

// end remembers that the peer's session is over.
func (s *session) end() {
	s.past[int(s.pastNext)%len(s.past)] = s.remote
	s.pastNext++
	s.remote = 0
}

// silent reports whether the peer, whose session is known, answered none of our HELLOs for that time (E33).
func (s *session) silent(now, after Instant) bool {
	return s.remote != 0 && s.unansweredHellos >= minStalls && after > 0 && now-s.lastHeardAt >= after
}

// identify determines whether a packet belongs to our session with the peer, as it
// does not seem to. It adopts the peer's if need be (E6, E8).
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
	// The peer may know nothing of ours but its number.
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

// ProcessEnded informs a Conn that the peer's process has ended, which the transport has
// found (E9).
func (c *Conn) ProcessEnded(now Instant, acts []Action) []Action {
	c.acts, c.changed = acts, true
	c.path.timeShorts(now)
	c.note(ProcessEnded)
	if c.session.remote != 0 || c.cfg.Job {
		c.endSession(now, endDied)
	}
	return c.acts
}

// ProcessClosed informs a Conn that the peer has shut down, which the transport has found: without a session, the peer
// could not say so itself (E9).
func (c *Conn) ProcessClosed(now Instant, acts []Action) []Action {
	c.acts, c.changed = acts, true
	c.path.timeShorts(now)
	c.onClose(now)
	return c.acts
}

// endSession ends the peer's session and what had begun in it. Later messages wait for a new one, unless the peer does
// not return.
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

// Left reports whether the process of the peer, a rank of our job, is gone, and whether it closed its session before.
func (c *Conn) Left() (left, closed bool) { return c.left != 0, c.left == endClosed }

// declareUnreachable ends our session, as the peer is unreachable (E31): packets of it are invalid from now on.
func (c *Conn) declareUnreachable(now Instant, why ending) {
	c.note(Unreachable)
	e := c.endMessages(now, why)
	if why == endUnreachable { // without a way to the peer, those that wait for a session would wait forever
		c.sends.end(&e, nil)
	}
	// Sessions of the peer that ended cannot be confused any more: what they
	// have sent bears our old session. The peer's own may go on.
	c.session = session{local: c.random.session(c.session.local), hello: now, wait: c.cfg.Timing.HelloFirst}
}

// Unreachable informs a Conn that the transport has no way to the peer, and why. Messages that wait for a session
// fail too.
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

// Close reports to the peer that the rank shuts down (E9). What it sends afterwards is answered by the same, at the next Flush,
// until LingerUntil; nothing else is to be done with the Conn.
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
		c.sendAck(now) // close acknowledges no more than what has arrived in order
	}
	c.sendClose()
	return c.acts
}

// onClosed takes a packet of the peer's session after Close.
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

// lingerTimeOuts is for how many of our time-outs a peer is answered after Close (RFC 9000, section 10.2), and lingerLeast for how
// long at least: on a busy host the peer's process may not get to run for several times as long as a time-out of a few milliseconds.
const (
	lingerTimeOuts = 3
	lingerLeast    = 150 * time.Millisecond
)

// LingerUntil returns until when the peer may retransmit what has arrived here, as it has neither an acknowledgement nor our
// close; false if it will not, or before Close. That is three time-outs after its last packet, at least 150 ms, and not more than three
// of the longest after Close.
func (c *Conn) LingerUntil() (Instant, bool) {
	if !c.closed || c.cfg.Reliable || c.session.remote == 0 || c.arrivals.next == c.cfg.firstPacket && !c.arrivals.gaps() {
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

// reset begins a new pair of sessions, with nothing under way.
func (c *Conn) reset() {
	c.session.wait = c.cfg.Timing.HelloFirst
	c.path.reset()
	c.controls.reset()
	c.arrivals.reset(c.cfg.firstPacket, max(c.cfg.Window, shortWindow))
	c.sends.reset()
	c.recvs.reset()
	c.reports.reset()
}

// helloDue returns when the next HELLO is to be sent (E7, E33), or never.
func (c *Conn) helloDue() Instant {
	s := &c.session
	if s.remote != 0 && !c.path.flight.empty() {
		if c.path.trip.known() {
			return never // retransmissions ask as well
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
		return s.hello // no limit was ever received
	case queued:
		return max(s.hello, s.lastHeardAt+c.cfg.Timing.HelloFirst)
	}
	return max(s.hello, s.lastHeardAt+c.cfg.Timing.HelloMax)
}

// sendHello sends the HELLO that is due, and the answer that is due (E6).
func (c *Conn) sendHello(now Instant) {
	s := &c.session
	if ask := s.ask; ask || now >= c.helloDue() {
		s.ask = false
		// For packets in flight the time-outs decide (E31).
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
	} else { // nothing has happened yet in a session with it
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

package extended

import (
	"errors"
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// session has the sessions of both ranks (E5–E9).
type session struct {
	// local and remote are the sessions of both sides; remote is 0 while unknown.
	local, remote protocol.Session
	// past are the latest sessions of the peer that ended during our session; pastNext is the index of the next one to
	// overwrite.
	past     [4]protocol.Session
	pastNext uint8
	// greet: the next ACK is the first one to a session just adopted.
	greet bool
	// ask: a HELLO is due even if nothing waits to be sent: the peer may have been restarted, or is of another version.
	ask bool

	// hello is the earliest time of the next HELLO, and wait the interval between that one and the following one.
	hello, wait      Instant
	lastHeardAt      Instant // when a packet of the peer was last received
	unansweredHellos int32   // HELLOs sent since then
	// answer is the session of the peer to which our session must be sent, or 0 (E6). answerClock is the clock of its
	// HELLO.
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

// identify reports whether a packet whose sessions are not the known ones belongs to our session with the peer. It
// adopts the peer's session if necessary (E6, E8).
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
	// The peer may know no more of our session than its number.
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

// ProcessEnded informs a Conn that the peer's process has ended, as detected by the transport (E9).
func (c *Conn) ProcessEnded(now Instant, acts []Action) []Action {
	c.acts, c.changed = acts, true
	c.path.timeShorts(now)
	c.note(ProcessEnded)
	if c.session.remote != 0 || c.cfg.Job {
		c.endSession(now, endDied)
	}
	return c.acts
}

// ProcessClosed informs a Conn that the peer has shut down, as detected by the transport (E9). Without a session, the
// peer could not send close.
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

// declareUnreachable ends our session because the peer is unreachable (E31). Packets that name it are invalid from now
// on.
func (c *Conn) declareUnreachable(now Instant, why ending) {
	c.note(Unreachable)
	e := c.endMessages(now, why)
	if why == endUnreachable { // without a way to the peer, they would wait for a session forever
		c.sends.end(&e, nil)
	}
	// Ended sessions of the peer need not be remembered: their packets name our old session. The peer's current session
	// may continue.
	c.session = session{local: c.random.session(c.session.local), hello: now, wait: c.cfg.Timing.HelloFirst}
}

// Unreachable informs a Conn that the transport has no way to the peer, for the given reason. It also ends messages
// that wait for a session.
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

// Close sends close to the peer, because this rank shuts down (E9). Until LingerUntil, the next Flush answers later
// packets of the peer with close again. The Conn has no other use after Close.
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

// onClosed handles a packet of the peer's session after Close.
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

// lingerTimeOuts is the number of our time-outs for which a peer is answered after Close (RFC 9000, section 10.2).
// lingerLeast is the minimum duration: on a busy host, the peer's process may not be scheduled for several times as
// long as a time-out of a few milliseconds.
const (
	lingerTimeOuts = 3
	lingerLeast    = 150 * time.Millisecond
)

// LingerUntil returns the time until which the peer may retransmit packets that were received here, because it has
// neither an acknowledgement nor our close. It returns false if the peer will not retransmit, or before Close. The time
// is three time-outs after its last packet, but at least 150 ms, and at most three of the longest time-outs after
// Close.
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
		return s.hello // no limit was received yet
	case queued:
		return max(s.hello, s.lastHeardAt+c.cfg.Timing.HelloFirst)
	}
	return max(s.hello, s.lastHeardAt+c.cfg.Timing.HelloMax)
}

// sendHello sends the HELLO and the answer that are due (E6).
func (c *Conn) sendHello(now Instant) {
	s := &c.session
	if ask := s.ask; ask || now >= c.helloDue() {
		s.ask = false
		// For packets in flight, the time-outs decide (E31).
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
	} else { // no packet was exchanged in a session with it yet
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

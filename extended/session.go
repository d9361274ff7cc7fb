package extended

import "github.com/zrlmpi/zrlmpid/protocol"

// session is who talks to whom (E5–E9).
type session struct {
	// local and remote are the sessions of both sides; remote is 0 while it
	// is not known.
	local, remote uint32
	// past are sessions of the peer that ended during our own, pastNext the
	// one that is to be overwritten next.
	past     [4]uint32
	pastNext int
	// epoch counts pairs of sessions. It makes Messages differ.
	epoch uint32

	// hello is the time before which no HELLO is sent, and wait how long
	// after the next one the one after that comes.
	hello, wait Instant
	heard       Instant // when the peer was last heard
	unheard     int     // HELLOs since then
	// answer is the session of the peer that is to be told ours, if any (E6).
	answer uint32
}

func (s *session) ended(peer uint32) bool {
	for _, p := range s.past {
		if p == peer {
			return true
		}
	}
	return false
}

// end remembers that the peer's session is over.
func (s *session) end() {
	s.past[s.pastNext%len(s.past)] = s.remote
	s.pastNext++
	s.remote = 0
}

// identify finds out whether a packet belongs to our session with the peer. It
// adopts the peer's if need be (E6, E8).
func (c *Conn) identify(now Instant, h *protocol.ExtHeader, acts []Action) ([]Action, bool) {
	s := &c.session
	if h.Session == s.remote && h.PeerSession == s.local && h.Session != 0 {
		return acts, true
	}
	hello := h.Flags&protocol.FlagHello != 0
	if h.Session == 0 || s.ended(h.Session) {
		return acts, false
	}
	if h.PeerSession != s.local {
		if h.Type != protocol.Ack || hello {
			s.answer = h.Session
		}
		return acts, false
	}
	if s.remote != 0 {
		acts = c.note(SessionChanged, acts)
		s.end()
		acts = c.endMessages(now, endReplaced, acts)
	}
	s.remote = h.Session
	s.hello, s.wait, s.unheard = now, c.cfg.Timing.HelloFirst, 0
	// The peer may know nothing of ours but its number.
	c.arrivals.now, c.arrivals.full = true, true
	return c.note(Connected, acts), true
}

// onGoodbye takes the peer's leave (E9).
func (c *Conn) onGoodbye(now Instant, acts []Action) []Action {
	acts = c.note(SaidGoodbye, acts)
	c.session.end()
	acts = c.endMessages(now, endGoodbye, acts)
	c.session.hello = now + c.random.jitter(c.cfg.Timing.HelloFirst)
	return acts
}

// giveUp ends our session, as the peer is silent (E31).
func (c *Conn) giveUp(now Instant, acts []Action) []Action {
	acts = c.note(GaveUp, acts)
	acts = c.endMessages(now, endSilent, acts)
	s := &c.session
	// Sessions of the peer that ended can no longer be mistaken: what they
	// have sent bears our old session. The peer's own may go on.
	*s = session{local: c.random.session(s.local), epoch: s.epoch, hello: now}
	s.wait = c.cfg.Timing.HelloFirst
	return acts
}

// Goodbye says that the rank shuts down (E9). Nothing is to be done with the
// Conn afterwards.
func (c *Conn) Goodbye(acts []Action) []Action {
	if c.session.remote == 0 {
		return acts
	}
	h := c.header(protocol.Error, protocol.SendInt)
	h.Tag = uint32(protocol.CodeGoodbye)
	c.stats.PacketsSent[h.Type]++
	return append(acts, Action{Kind: Transmit, Header: h})
}

// reset begins a new pair of sessions, with nothing under way.
func (c *Conn) reset() {
	c.session.epoch++
	c.session.wait = c.cfg.Timing.HelloFirst
	c.flight.reset(c.cfg.firstPacket)
	c.window.reset()
	c.trip.reset(&c.cfg.Timing)
	c.stalled, c.urgent, c.full, c.asked = 0, false, false, c.cfg.firstPacket-1
	c.controls.reset()
	c.arrivals.reset(c.cfg.firstPacket)
	c.sends.reset(c.cfg.firstMessage)
	c.recvs.reset(c.cfg.firstMessage)
}

// helloDue returns when the next HELLO is to be sent, if one is (E7, E33).
func (c *Conn) helloDue() (Instant, bool) {
	s := &c.session
	queued := c.sends.queued != nil
	switch {
	case s.remote == 0:
		return s.hello, queued
	case c.flight.sent.count+c.flight.lost.count > 0:
		return 0, false // repeats ask as well
	case queued && c.sends.limit == c.cfg.firstMessage:
		return s.hello, true // no limit was ever told
	case queued:
		return max(s.hello, s.heard+c.cfg.Timing.HelloFirst), true
	case c.sends.begun > 0 || c.recvs.waiting > 0:
		return max(s.hello, s.heard+c.cfg.Timing.HelloMax), true
	}
	return 0, false
}

// sayHello sends the HELLO that is due, or the answer that is owed (E6).
func (c *Conn) sayHello(now Instant, acts []Action) []Action {
	s := &c.session
	at, due := c.helloDue()
	if due && now >= at && c.mute(now) {
		acts = c.giveUp(now, acts)
		at, due = c.helloDue()
	}
	if due && now >= at {
		h := c.header(protocol.Ack, protocol.RecvInt)
		h.Flags = protocol.FlagHello
		s.hello = now + c.random.jitter(s.wait)
		s.wait = min(2*s.wait, c.cfg.Timing.HelloMax)
		s.unheard++
		c.stats.Hellos++
		acts = c.appendAck(now, h, &c.ackBuf, acts)
	}
	if s.answer != 0 {
		h := c.header(protocol.Ack, protocol.RecvInt)
		if s.answer == s.remote {
			acts = c.appendAck(now, h, &c.helloBf, acts)
		} else {
			h.PeerSession, h.Acknowledged = s.answer, c.cfg.firstPacket
			acts = c.appendFirstAck(h, acts)
		}
		s.answer = 0
	}
	return acts
}

// mute reports whether a peer whose session is known leaves our HELLOs
// unanswered (E33).
func (c *Conn) mute(now Instant) bool {
	s, giveUp := &c.session, c.cfg.Timing.GiveUp
	return s.remote != 0 && s.unheard >= minStalls && giveUp > 0 && now-s.heard >= giveUp
}

package extended

import "github.com/zrlmpi/zrlmpid/protocol"

// A send that was announced waits for a receive of the peer, and a program may have millions of those. The Conn keeps
// the number of one that rests, and its caller all else.

// cancelBit marks a send in resting that the peer was asked to cancel.
const cancelBit = 1 << 31

// WakeSends sets the function that returns what RestSend has freed: the operation, with an ID that may differ from the
// earlier one, and when it was posted. The Conn calls it in the middle of an event when the peer answers the
// announcement, and in WakeSend. It must not call the Conn.
func (c *Conn) WakeSends(wake func(ref uint32) (op SendOp, since Instant)) {
	c.sends.resting, c.sends.woken = new(resting), wake
}

// RestSend frees the Conn's memory of a send that waits for CLEAR_TO_SEND, and returns the message's number, for
// WakeSend. ref is 1 to 2³⁰ − 1. ok is false, and nothing changes, for any other send. The send counts, and is
// canceled by the peer or ends with the session, as before; EachSend leaves it out.
func (c *Conn) RestSend(id ID, ref uint32) (number uint32, ok bool) {
	s := &c.sends
	m := s.find(id)
	if s.resting == nil || m == nil || ref == 0 || ref > refBits || m.op.Partial ||
		m.state != WaitClear && m.state != Canceling {
		return 0, false
	}
	if m.state == Canceling {
		ref |= cancelBit
	}
	number = m.number
	s.unlink(m)
	s.resting.put(number, ref)
	return number, true
}

// WakeSend ends the rest of a send.
func (c *Conn) WakeSend(number uint32) { c.sends.wake(number) }

// wake returns a send that rested, or nil.
func (s *sending) wake(number uint32) *outbound {
	ref := takeRest(s.resting, number)
	if ref == 0 {
		return nil
	}
	m := s.allocate()
	m.op, m.since = s.woken(ref & refBits)
	m.number, m.state = number, WaitClear
	if ref&cancelBit != 0 {
		m.state = Canceling
	}
	s.insert(m)
	s.begun++
	s.byID.put(m.op.ID, m)
	s.byNumber.put(number, m)
	return m
}

// announced returns the send that a packet of the peer answers, or nil.
func (s *sending) announced(h *protocol.ExtHeader) *outbound {
	if m := s.byNumber.get(h.Message); m != nil {
		return m
	}
	return s.wake(h.Message)
}

// open is the number of sends that have not ended.
func (s *sending) open() int { return int(s.count) + s.resting.len() }

// endResting ends all sends that rest, with one action.
func (s *sending) endResting(e *sessionEnd) {
	q := s.resting
	if q.len() == 0 {
		return
	}
	a := s.next()
	a.Kind = RestingSendsDone
	a.Err = e.failure(Wait{State: WaitClear, Local: s.cfg.Local, Remote: s.cfg.Remote, Since: e.now})
	*q = resting{}
}

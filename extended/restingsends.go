package extended

import "github.com/zrlmpi/zrlmpid/protocol"

// An announced send waits for a receive of the peer, and a program may have millions of them. The Conn keeps the number
// of a resting send, and its caller the rest.

// cancelBit marks a resting send that the peer was asked to cancel.
const cancelBit = 1 << 31

// WakeSends sets the function that returns the state released by RestSend: the operation, with an ID that may differ
// from the earlier one, and the time at which it was posted. The Conn calls it during an event in which the peer
// answers the announcement, and in WakeSend. The function must not call the Conn.
func (c *Conn) WakeSends(wake func(ref uint32) (op SendOp, since Instant)) {
	c.sends.resting, c.sends.woken = new(resting), wake
}

// RestSend releases the Conn's memory for a send that waits for CLEAR_TO_SEND, and returns the number of the message,
// for WakeSend. ref is 1 to 2³⁰ − 1. For any other send, ok is false and nothing changes. The send still counts as
// pending, and still ends when the peer cancels it or the session ends; EachSend omits it.
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

// WakeSend restores a resting send.
func (c *Conn) WakeSend(number uint32) { c.sends.wake(number) }

// wake restores and returns a resting send, or nil.
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

// open returns the number of pending sends.
func (s *sending) open() int { return int(s.count) + s.resting.len() }

// endResting ends all resting sends with one action.
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

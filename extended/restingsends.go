package extended

import "github.com/zrlmpi/zrlmpid/protocol"

// An announced send waits for the peer to post a receive, and a program may have millions of such sends. To save
// memory, the Conn keeps only the number of a resting send, and its caller keeps the other state.

// cancelBit marks a resting send whose cancellation was requested from the peer.
const cancelBit = 1 << 31

// SetWakeSend sets the function that returns the state released by RestSend: the operation and the time at which it was
// posted. The operation's ID may differ from the earlier one. The Conn calls the function when the peer answers the
// announcement, and in WakeSend. The function must not call the Conn.
func (c *Conn) SetWakeSend(wake func(ref uint32) (op SendOp, since Instant)) {
	c.sends.resting, c.sends.restoreSend = new(resting), wake
}

// RestSend releases the Conn's memory for a send that is waiting for CLEAR_TO_SEND, and returns the number of the
// message, for WakeSend. ref identifies the send to the function set by SetWakeSend, and must be 1 to 2³⁰ − 1. The send
// remains pending and completes as usual, but EachSend omits it. For any other send, RestSend changes nothing and ok is
// false.
func (c *Conn) RestSend(id ID, ref uint32) (number uint32, ok bool) {
	send := &c.sends
	message := send.find(id)
	if send.resting == nil || message == nil || ref == 0 || ref > refBits || message.op.Partial ||
		message.state != WaitClear && message.state != Canceling {
		return 0, false
	}
	if message.state == Canceling {
		ref |= cancelBit
	}
	number = message.number
	send.unlink(message)
	send.resting.put(number, ref)
	return number, true
}

// WakeSend restores a resting send.
func (c *Conn) WakeSend(number uint32) { c.sends.wake(number) }

// wake restores the resting send with the given number and returns it. If there is no such send, it returns nil.
func (s *sending) wake(number uint32) *outbound {
	ref := removeResting(s.resting, number)
	if ref == 0 {
		return nil
	}
	message := s.allocate()
	message.op, message.postedAt = s.restoreSend(ref & refBits)
	message.number, message.state = number, WaitClear
	if ref&cancelBit != 0 {
		message.state = Canceling
	}
	s.insert(message)
	s.begunSends++
	s.byID.put(message.op.ID, message)
	s.byNumber.put(number, message)
	return message
}

// findAnnounced returns the announced send to which an answer from the peer refers, or nil.
func (s *sending) findAnnounced(h *protocol.ExtHeader) *outbound {
	if m := s.byNumber.get(h.Message); m != nil {
		return m
	}
	return s.wake(h.Message)
}

// numPending returns the number of pending sends.
func (s *sending) numPending() int { return int(s.count) + s.resting.len() }

// endResting reports by a single action that all resting sends have failed.
func (s *sending) endResting(e *sessionEnd) {
	q := s.resting
	if q.len() == 0 {
		return
	}
	a := s.nextAction()
	a.Kind = RestingSendsDone
	a.Err = e.messageError(Wait{State: WaitClear, Local: s.cfg.Local, Remote: s.cfg.Remote, Since: e.endedAt})
	*q = resting{}
}

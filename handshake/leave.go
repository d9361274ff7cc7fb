package handshake

import "time"

// A message may remain in progress after its caller is gone, because the peer relies on it. Other messages of the Pair
// wait for it, so it has a deadline even if none is configured.

// leftDeadline is the deadline for the ACK or DATA of such a message if none is configured.
const leftDeadline = 10 * time.Second

// LeaveSend informs the Pair that the caller of a send is gone, and reports whether the send must stay in progress. If
// not, cancel it by CancelSend. A send must stay in progress if a deployed node may have its SEND_REQUEST, because the
// node would wait forever for DATA after it has cleared the message. DATA is then sent if the node asks for it, but
// SEND_REQUEST is not retransmitted. Keep the payload until SendDone, or until CancelSend succeeds.
func (p *Pair) LeaveSend(now Instant, id ID) bool {
	s := &p.send
	switch {
	case s.state == Idle || s.op.ID != id:
		return false
	case s.state == WaitAck:
		s.gone = true
		if s.dataSent && !s.deadline.on {
			s.deadline = in(now, leftDeadline)
		}
		return true
	case s.requested == 0 || !p.cfg.Peer.OneAtATime:
		return false
	}
	s.gone, s.rto, s.deadline = true, timer{}, timer{}
	return true
}

// SendLeft reports whether LeaveSend was called for the send in progress, and the peer has not cleared it yet.
func (p *Pair) SendLeft() bool {
	return p.send.gone && (p.send.state == WaitClear || p.send.state == Held)
}

// LeaveRecv informs the Pair that the caller of a receive is gone. The wait for a message that CancelRecv could not
// cancel then has a deadline.
func (p *Pair) LeaveRecv(now Instant, id ID) {
	r := &p.recv
	if r.state == Idle || r.op.ID != id {
		return
	}
	r.gone = true
	if r.active() && !r.deadline.on {
		r.deadline = in(now, leftDeadline)
	}
}

// bound returns the given deadline, or leftDeadline if the deadline is 0 and the caller of the message is gone.
func bound(deadline Instant, gone bool) Instant {
	if gone && deadline == 0 {
		return leftDeadline
	}
	return deadline
}

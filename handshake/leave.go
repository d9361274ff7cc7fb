package handshake

import "time"

// A message whose caller is gone may still be in progress, because the peer relies on it. Other messages of the pair
// wait for it, so it has a deadline even if none is configured.

// leftDeadline ends the wait for the ACK or DATA of such a message if no deadline is configured.
const leftDeadline = 10 * time.Second

// LeaveSend leaves a send to the peer because its caller is gone, and reports whether the send is still in progress. If
// not, cancel it by CancelSend. A deployed node that has the SEND_REQUEST would wait forever for the DATA of a message
// that it has cleared, so DATA is sent if the node asks for it; SEND_REQUEST is not retransmitted. The caller must keep
// the payload until SendDone, or until CancelSend succeeds.
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

// SendLeft reports whether a send was left by LeaveSend and is not yet cleared by the peer.
func (p *Pair) SendLeft() bool {
	return p.send.gone && (p.send.state == WaitClear || p.send.state == Held)
}

// LeaveRecv bounds the wait for a message that CancelRecv could not cancel, because the caller of its receive is gone.
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

// bound returns a configured deadline, or leftDeadline for a message whose caller is gone if none is configured.
func bound(deadline Instant, gone bool) Instant {
	if gone && deadline == 0 {
		return leftDeadline
	}
	return deadline
}

package handshake

import "time"

// A message may have to continue although its caller is gone, because the peer relies on it. It then has a deadline
// even if none is configured, because other messages of the Pair wait for it.

// detachedDeadline limits the wait for ACK or DATA of a message whose caller is gone. It applies if no deadline is
// configured.
const detachedDeadline = 10 * time.Second

// DetachSend informs the Pair that the caller of a send is gone, and reports whether the send must continue. If it need
// not, cancel it with CancelSend. A send must continue if a deployed node may have received its SEND_REQUEST, because
// the node would wait forever for DATA after clearing the message. DATA is then sent if the node asks for it, but
// SEND_REQUEST is not retransmitted. Keep the payload until SendDone, or until CancelSend succeeds.
func (p *Pair) DetachSend(now Instant, id ID) bool {
	send := &p.send
	switch {
	case send.state == Idle || send.op.ID != id:
		return false
	case send.state == WaitAck:
		send.detached = true
		if send.dataSent && !send.deadline.armed {
			send.deadline = timerAfter(now, detachedDeadline)
		}
		return true
	case send.requestsSent == 0 || !p.cfg.Peer.BlockingCalls:
		return false
	}
	send.detached, send.rto, send.deadline = true, timer{}, timer{}
	return true
}

// IsSendDetached reports whether the current send was detached and the peer has not cleared it yet.
func (p *Pair) IsSendDetached() bool {
	return p.send.detached && (p.send.state == WaitClear || p.send.state == Held)
}

// DetachRecv informs the Pair that the caller of a receive is gone. If CancelRecv could not cancel the receive, the
// wait for its message has a deadline from then on.
func (p *Pair) DetachRecv(now Instant, id ID) {
	recv := &p.recv
	if recv.state == Idle || recv.op.ID != id {
		return
	}
	recv.detached = true
	if recv.isActive() && !recv.deadline.armed {
		recv.deadline = timerAfter(now, detachedDeadline)
	}
}

// boundDeadline returns the given deadline, or detachedDeadline if it is 0 and the caller of the message is gone.
func boundDeadline(deadline Instant, gone bool) Instant {
	if gone && deadline == 0 {
		return detachedDeadline
	}
	return deadline
}

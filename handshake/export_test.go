package handshake

// SendIdle reports whether Send would be accepted.
func (p *Pair) SendIdle() bool { return p.send.state == Idle }

// Timeout is Deadline, without what only limits how packets are taken.
func (p *Pair) Timeout() (Instant, bool) {
	return earliest(p.send.rto, p.send.deadline, p.recv.rto, p.recv.deadline)
}

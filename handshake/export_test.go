package handshake

// SendIdle reports whether the pair has no send.
func (p *Pair) SendIdle() bool { return p.send.state == Idle }

// Timeout is Deadline without the timers that only affect how packets are handled.
func (p *Pair) Timeout() (Instant, bool) {
	return earliest(p.send.rto, p.send.deadline, p.recv.rto, p.recv.deadline)
}

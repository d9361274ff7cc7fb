package handshake

// SendIdle reports whether Send would be accepted.
func (p *Pair) SendIdle() bool { return p.send.state == Idle }

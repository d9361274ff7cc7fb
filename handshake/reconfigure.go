package handshake

// Reconfigure takes the time-outs, the deadlines and OnPartial of cfg for the next
// messages. A message that is under way ends by those that it began with; each
// direction goes its own way. Nothing else of cfg is examined: both sides have to
// agree on the rest, or it is what the peer is.
func (p *Pair) Reconfigure(cfg *Config) {
	p.next = &renewal{Timing: cfg.Timing, OnPartial: cfg.OnPartial}
	if p.send.state == Idle {
		p.renewSend()
	}
	if !p.recv.active() { // one that waits for a message has none yet
		p.renewRecv()
	}
}

// renewal is what a pair is to go by from the next message on.
type renewal struct {
	Timing
	OnPartial
	// send and recv say that the direction has it.
	send, recv bool
}

// renewSend lets the sender's half have what is its own. No message is in it.
func (p *Pair) renewSend() {
	n, t := p.next, &p.cfg.Timing
	t.Clear, t.Ack, t.ClearDeadline, t.AckDeadline = n.Clear, n.Ack, n.ClearDeadline, n.AckDeadline
	t.FirstDeadline = n.FirstDeadline
	p.cfg.OnPartial = n.OnPartial
	n.send = true
	p.renewed()
}

// renewRecv lets the receiver's half have what is its own.
func (p *Pair) renewRecv() {
	n, t := p.next, &p.cfg.Timing
	t.Data, t.DataDeadline, t.FragmentGap = n.Data, n.DataDeadline, n.FragmentGap
	n.recv = true
	p.renewed()
}

func (p *Pair) renewed() {
	if p.next.send && p.next.recv {
		p.next = nil
	}
}

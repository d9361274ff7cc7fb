package handshake

// Reconfigure applies the timeouts, the deadlines and OnPartial of cfg from the next message on, separately for each
// direction. A message in progress keeps its settings. Reconfigure ignores the rest of cfg, which describes the peer or
// must agree on both sides.
func (p *Pair) Reconfigure(cfg *Config) {
	p.newSettings = &newSettings{Timing: cfg.Timing, OnPartial: cfg.OnPartial}
	if p.send.state == Idle {
		p.applySendSettings()
	}
	if !p.recv.isActive() { // a receive that is waiting for SEND_REQUEST has not used any setting yet
		p.applyRecvSettings()
	}
}

// newSettings holds the settings that apply from the next message on.
type newSettings struct {
	Timing
	OnPartial
	// send and recv are set once the new settings apply to sending and to receiving, respectively.
	send, recv bool
}

// applySendSettings applies the settings for sending. The sending half must be idle.
func (p *Pair) applySendSettings() {
	n, t := p.newSettings, &p.cfg.Timing
	t.Clear, t.Ack, t.ClearDeadline, t.AckDeadline = n.Clear, n.Ack, n.ClearDeadline, n.AckDeadline
	t.FirstDeadline = n.FirstDeadline
	p.cfg.OnPartial = n.OnPartial
	n.send = true
	p.dropApplied()
}

// applyRecvSettings applies the settings for receiving.
func (p *Pair) applyRecvSettings() {
	n, t := p.newSettings, &p.cfg.Timing
	t.Data, t.DataDeadline, t.FragmentGap = n.Data, n.DataDeadline, n.FragmentGap
	n.recv = true
	p.dropApplied()
}

// dropApplied forgets the new settings once they apply in both directions.
func (p *Pair) dropApplied() {
	if p.newSettings.send && p.newSettings.recv {
		p.newSettings = nil
	}
}

package extended

// Reconfigure applies Timing.UnreachableAfter and EagerLimit of cfg. If the peer is silent now, the old
// UnreachableAfter applies until it answers. The new EagerLimit applies to messages that have not begun. The rest of
// cfg is ignored, because the peer was informed of it or has to agree with it.
func (c *Conn) Reconfigure(now Instant, cfg *Config) {
	n := cfg.withDefaults()
	c.cfg.EagerLimit = n.EagerLimit
	c.timeoutChange = &timeoutChange{unreachableAfter: n.Timing.UnreachableAfter, since: now}
	c.changed = true
	c.adoptUnreachableAfter()
}

// timeoutChange is a change of UnreachableAfter. The new value applies to silences that begin after the time since.
type timeoutChange struct{ unreachableAfter, since Instant }

// adoptUnreachableAfter applies the new UnreachableAfter once the peer has answered or owes no answer.
func (c *Conn) adoptUnreachableAfter() {
	if !c.Busy() || c.silentSince() > c.timeoutChange.since {
		c.cfg.Timing.UnreachableAfter, c.timeoutChange = c.timeoutChange.unreachableAfter, nil
	}
}

package extended

// Reconfigure takes Timing.UnreachableAfter and EagerLimit of cfg. A silence of
// the peer that has begun is measured by the UnreachableAfter that it began with, and the limit
// holds for messages that have not begun. Nothing else of cfg is used: the peer has
// been informed of it, or has to have the same.
func (c *Conn) Reconfigure(now Instant, cfg *Config) {
	n := cfg.complete()
	c.cfg.EagerLimit = n.EagerLimit
	c.renew = &renewal{declareUnreachable: n.Timing.UnreachableAfter, since: now}
	c.changed = true
	c.adoptUnreachableAfter()
}

// renewal is the UnreachableAfter for silences that begin after since.
type renewal struct{ declareUnreachable, since Instant }

// adoptUnreachableAfter takes the new UnreachableAfter once nothing is expected of the peer, or a packet of it has arrived.
func (c *Conn) adoptUnreachableAfter() {
	if !c.Busy() || c.silence() > c.renew.since {
		c.cfg.Timing.UnreachableAfter, c.renew = c.renew.declareUnreachable, nil
	}
}

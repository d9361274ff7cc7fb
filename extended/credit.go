package extended

// CreditPool bounds the total number of messages without a matching receive that a rank keeps for all of its peers. All
// Conns of the rank share it. Each Conn permanently grants its peer Config.Messages messages, and more while messages
// from that peer pile up and the pool is not exhausted. granted is the number of messages granted in addition to
// Config.Messages, by all Conns together; it never exceeds limit.
type CreditPool struct{ limit, granted int }

// NewCreditPool returns a CreditPool that allows the given number of messages in total.
func NewCreditPool(limit int) *CreditPool { return &CreditPool{limit: limit} }

// Limit returns the number of messages passed to NewCreditPool.
func (r *CreditPool) Limit() int { return r.limit }

// acquire takes credit for up to n messages from the pool, and returns the number of messages for which it obtained
// credit.
func (r *CreditPool) acquire(n int) int {
	n = max(min(n, r.limit-r.granted), 0)
	r.granted += n
	return n
}

// adaptWindow adapts the window to the number of the peer's messages that have no matching receive. As far as the pool
// allows, the window becomes twice that number, or that number plus Config.Messages if that is more.
func (r *receiving) adaptWindow() {
	cfg := &r.cfg
	if cfg.CreditPool == nil {
		return
	}
	waiting := int(r.nextMessage - r.firstMessage - r.matched)
	want, window := waiting+max(waiting, cfg.Messages), int(r.messageWindow)
	switch {
	case want > window:
		r.messageWindow += uint32(cfg.CreditPool.acquire(want - window))
	case want < window: // limits already sent to the peer must remain valid
		unknown := int(int32(r.firstMessage + r.messageWindow + r.matched - r.advertisedLimit))
		n := max(min(window-want, unknown), 0)
		r.messageWindow -= uint32(n)
		cfg.CreditPool.granted -= n
	}
}

// maxQueued limits the number of messages waiting to be sent, because each occupies a few hundred bytes of memory. At
// this number, Fullness returns QueueFull, provided that the peer's limit is known.
const maxQueued = 1 << 12

// maxReserve limits the credit that is reserved for messages of collective calls, because those are never refused.
const maxReserve = 64

// Fullness describes whether, and for what reason, the program's next message has to wait.
type Fullness uint8

const (
	// NotFull: the message need not wait.
	NotFull Fullness = iota
	// CreditFull: the message credit that the peer has granted is used up, except for a reserve that is kept for
	// collective calls.
	CreditFull
	// QueueFull: too many messages wait to be sent.
	QueueFull
	// LimitUnknown: the peer's limit is not known yet. The message need not wait, but may turn out to exceed the limit.
	LimitUnknown
)

// Fullness reports whether and why the program's next message could not be sent before its receive is posted. If the
// caller accepts the message nevertheless, its receive may be posted and still wait forever, because the message waits
// for credit. Send does not check this.
func (c *Conn) Fullness() Fullness {
	send := &c.sends
	queued := c.NumQueued()
	switch {
	case send.initialCredit == 0: // assume that the peer allows as many messages as this rank does
		if queued >= c.cfg.Messages {
			return QueueFull
		}
		return LimitUnknown
	case int(int32(send.messageLimit-send.number))-queued <= send.reserve():
		return CreditFull
	case queued >= maxQueued:
		return QueueFull
	}
	return NotFull
}

// NumQueued returns the number of messages waiting to be sent.
func (c *Conn) NumQueued() int { return int(c.sends.count - c.sends.begunSends) }

// IsQueued reports whether the send with the given ID is waiting to begin.
func (c *Conn) IsQueued(id ID) bool {
	m := c.sends.find(id)
	return m != nil && m.state == Queued
}

// NextNumber returns the number that will be assigned to the next message that begins.
func (c *Conn) NextNumber() uint32 { return c.sends.number }

// ConfirmedAt returns a lower bound for the time at which the peer sent an ACK that reports its limits and covers every
// message begun.
func (c *Conn) ConfirmedAt() Instant { return c.sends.confirmedAt }

// reserve returns the part of the peer's message credit that is kept for collective calls.
func (s *sending) reserve() int { return int(min(s.initialCredit/64, maxReserve)) }

// IsCreditScarce reports whether the peer's message credit is nearly used up. A caller that waits for each of its sends
// should then set SendOp.Announce, so that each send waits for its receive, instead of a later one being refused.
func (c *Conn) IsCreditScarce() bool {
	s := &c.sends
	return s.initialCredit != 0 && int32(s.messageLimit-s.number) < int32(s.initialCredit/8)
}

// WantCredit makes the Conn ask the peer for its limits while wanted is true, as if a message were waiting for credit
// (E33).
func (c *Conn) WantCredit(wanted bool) {
	if c.sends.creditWanted != wanted {
		c.sends.creditWanted, c.changed = wanted, true
	}
}

package extended

// Room bounds the number of messages without a matching receive that a rank keeps for all its peers together. The Conns
// of the rank share it: each grants its peer Config.Messages of it permanently, and more as messages of that peer pile
// up, while there is room.
type Room struct{ limit, granted int }

// NewRoom returns a Room for the given number of messages.
func NewRoom(limit int) *Room { return &Room{limit: limit} }

// Limit returns the number of messages for which there always is room.
func (r *Room) Limit() int { return r.limit }

// borrow grants up to n messages, and returns the number granted.
func (r *Room) borrow(n int) int {
	n = max(min(n, r.limit-r.granted), 0)
	r.granted += n
	return n
}

// adapt sets the number of messages that the peer may have without a receive to the number that it has, plus the same
// number again, or plus Config.Messages if that is more.
func (r *receiving) adapt() {
	cfg := &r.cfg
	if cfg.Room == nil {
		return
	}
	waiting := int(r.expected - r.firstMessage - r.matched)
	want, window := waiting+max(waiting, cfg.Messages), int(r.window)
	switch {
	case want > window:
		r.window += uint32(cfg.Room.borrow(want - window))
	case want < window: // limits already sent to the peer stay valid
		unknown := int(int32(r.firstMessage + r.window + r.matched - r.advertisedLimit))
		n := max(min(window-want, unknown), 0)
		r.window -= uint32(n)
		cfg.Room.granted -= n
	}
}

// maxQueued is the number of messages waiting to be sent from which on Full reports QueueFull, once the peer's limit is
// known. Each of them takes some hundred bytes of memory.
const maxQueued = 1 << 12

// maxReserve is the maximum credit reserved for messages of collective calls, which are never refused.
const maxReserve = 64

// Fullness is the reason why the next message of a program has to wait.
type Fullness uint8

const (
	// NotFull: it need not wait.
	NotFull Fullness = iota
	// CreditFull: all credit of the peer is used, except for a reserve.
	CreditFull
	// QueueFull: too many messages wait to be sent.
	QueueFull
	// Unknown: the peer's limit is not known yet. The message need not wait, but may turn out to exceed the limit.
	Unknown
)

// Full reports whether one more message of the program could not be sent ahead of its receive: if the caller accepts it
// nevertheless, a posted receive may wait forever. Messages sent without asking Full wait for credit.
func (c *Conn) Full() Fullness {
	s := &c.sends
	queued := c.Queued()
	switch {
	case s.grant == 0: // the peer is assumed to allow as many as this rank does
		if queued >= c.cfg.Messages {
			return QueueFull
		}
		return Unknown
	case int(int32(s.limit-s.number))-queued <= s.reserve():
		return CreditFull
	case queued >= maxQueued:
		return QueueFull
	}
	return NotFull
}

// Queued returns the number of messages waiting to be sent.
func (c *Conn) Queued() int { return int(c.sends.count - c.sends.begun) }

// Queues reports whether the message of the given ID is waiting to be sent.
func (c *Conn) Queues(id ID) bool {
	m := c.sends.find(id)
	return m != nil && m.state == Queued
}

// Next returns the number of the next message, which grows as messages begin.
func (c *Conn) Next() uint32 { return c.sends.number }

// Confirmed returns a time after which the peer stated its limit, when it had received every message begun.
func (c *Conn) Confirmed() Instant { return c.sends.confirmed }

// reserve returns the part of the peer's limit that a program may not use.
func (s *sending) reserve() int { return int(min(s.grant/64, maxReserve)) }

// Scarce reports whether little of the peer's credit is left. A caller that waits for each of its messages should then
// announce them, so that it is held back until each one is received, instead of being refused later.
func (c *Conn) Scarce() bool {
	s := &c.sends
	return s.grant != 0 && int32(s.limit-s.number) < int32(s.grant/8)
}

// WantCredit makes the Conn ask the peer for its limits as if a message were waiting for credit (E33), until it is
// called with false.
func (c *Conn) WantCredit(wanted bool) {
	if c.sends.wanted != wanted {
		c.sends.wanted, c.changed = wanted, true
	}
}

package extended

// Room bounds how many messages the peers of a rank together may have there that no receive has matched. The Conns of
// the rank share it: each grants its peer Config.Messages of it for good, and more as that peer's messages pile up, as
// long as there is some.
type Room struct{ limit, granted int }

// NewRoom returns room for so many messages.
func NewRoom(limit int) *Room { return &Room{limit: limit} }

// Limit returns how many messages there is room for, at least.
func (r *Room) Limit() int { return r.limit }

// borrow takes up to n.
func (r *Room) borrow(n int) int {
	n = max(min(n, r.limit-r.granted), 0)
	r.granted += n
	return n
}

// adapt sets how many messages the peer may have without a receive, by how many it has: as many again, but
// Config.Messages more at least.
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
	case want < window: // what the peer knows of stays
		unknown := int(int32(r.firstMessage + r.window + r.matched - r.advertisedLimit))
		n := max(min(window-want, unknown), 0)
		r.window -= uint32(n)
		cfg.Room.granted -= n
	}
}

// maxQueued is how many messages may wait to be sent until Full reports it, once the peer has said how many it allows.
// Each takes some hundred bytes until then.
const maxQueued = 1 << 12

// maxReserve is the most credit that is left to messages that are not a program's, of collective calls: these are never
// refused.
const maxReserve = 64

// Fullness says why a program's next message is to wait.
type Fullness uint8

const (
	// NotFull: it need not.
	NotFull Fullness = iota
	// CreditFull: the peer has as many messages without a receive as it allows, but for a reserve.
	CreditFull
	// QueueFull: as many as are kept wait to be sent.
	QueueFull
	// Unknown: the peer has not said how many it allows. It need not, and may turn out to be one too many.
	Unknown
)

// Full reports whether one more message of the program could not be sent ahead of its receive: a caller that accepts it
// all the same lets a posted receive wait forever. Messages for which it was not asked are sent when there is credit.
func (c *Conn) Full() Fullness {
	s := &c.sends
	queued := c.Queued()
	switch {
	case s.grant == 0: // it is taken to allow what this rank does
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

// Queued is how many messages wait to be sent, and Queues reports whether one does.
func (c *Conn) Queued() int { return int(c.sends.count - c.sends.begun) }

func (c *Conn) Queues(id ID) bool {
	m := c.sends.find(id)
	return m != nil && m.state == Queued
}

// Next returns the number of the next message, which grows as messages begin.
func (c *Conn) Next() uint32 { return c.sends.number }

// Confirmed returns a time after which the peer, having received every message that began, stated how many it allows.
func (c *Conn) Confirmed() Instant { return c.sends.confirmed }

// reserve is how many messages of the peer's limit are not for a program's.
func (s *sending) reserve() int { return int(min(s.grant/64, maxReserve)) }

// Scarce reports whether little of the peer's credit is left. A caller that waits for its messages one by one announces
// them then, so that it is held back until each is received, and not refused some day.
func (c *Conn) Scarce() bool {
	s := &c.sends
	return s.grant != 0 && int32(s.limit-s.number) < int32(s.grant/8)
}

// WantCredit has the peer asked for its limits as if a message was waiting for them (E33), until it is called with
// false.
func (c *Conn) WantCredit(wanted bool) {
	if c.sends.wanted != wanted {
		c.sends.wanted, c.changed = wanted, true
	}
}

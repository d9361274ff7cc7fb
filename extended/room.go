package extended

// Room bounds the total number of messages without a matching receive that a rank keeps for all of its peers. All Conns
// of the rank share it. Each Conn permanently grants its peer Config.Messages messages, and more while messages from
// that peer pile up and there is room.
type Room struct{ limit, granted int }

// NewRoom returns a Room that holds the given number of messages.
func NewRoom(limit int) *Room { return &Room{limit: limit} }

// Limit returns the number of messages passed to NewRoom.
func (r *Room) Limit() int { return r.limit }

// borrow reserves room for up to n messages, and returns the number of messages for which there is room.
func (r *Room) borrow(n int) int {
	n = max(min(n, r.limit-r.granted), 0)
	r.granted += n
	return n
}

// adapt adapts the window to the number of the peer's messages that have no matching receive. As far as there is room,
// the window becomes twice that number, or that number plus Config.Messages if that is more.
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
	case want < window: // limits already sent to the peer must remain valid
		unknown := int(int32(r.firstMessage + r.window + r.matched - r.advertisedLimit))
		n := max(min(window-want, unknown), 0)
		r.window -= uint32(n)
		cfg.Room.granted -= n
	}
}

// maxQueued is the number of messages waiting to be sent at which Full returns QueueFull, provided that the peer's
// limit is known. Each of these messages occupies a few hundred bytes of memory.
const maxQueued = 1 << 12

// maxReserve is the maximum credit reserved for messages of collective calls, which are never refused.
const maxReserve = 64

// Fullness is the reason why the program's next message has to wait.
type Fullness uint8

const (
	// NotFull: the message need not wait.
	NotFull Fullness = iota
	// CreditFull: the message credit that the peer has granted is used up, except for a reserve.
	CreditFull
	// QueueFull: too many messages wait to be sent.
	QueueFull
	// Unknown: the peer's limit is not known yet. The message need not wait, but may turn out to exceed the limit.
	Unknown
)

// Full reports whether and why the program's next message could not be sent before its receive is posted. If the caller
// accepts the message nevertheless, a posted receive may wait forever. Send does not check this; its messages wait for
// credit.
func (c *Conn) Full() Fullness {
	s := &c.sends
	queued := c.Queued()
	switch {
	case s.grant == 0: // assume that the peer allows as many messages as this rank does
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

// Queues reports whether the send with the given ID is waiting to begin.
func (c *Conn) Queues(id ID) bool {
	m := c.sends.find(id)
	return m != nil && m.state == Queued
}

// Next returns the number that the next message to begin will get.
func (c *Conn) Next() uint32 { return c.sends.number }

// Confirmed returns a time after which the peer sent an ACK with its limits that covered every message begun.
func (c *Conn) Confirmed() Instant { return c.sends.confirmed }

// reserve returns the number of messages of the peer's credit that are reserved for collective calls.
func (s *sending) reserve() int { return int(min(s.grant/64, maxReserve)) }

// Scarce reports whether the peer's message credit is nearly used up. A caller that waits for each of its sends should
// then set SendOp.Announce, so that each send waits for its receive, instead of a later one being refused.
func (c *Conn) Scarce() bool {
	s := &c.sends
	return s.grant != 0 && int32(s.limit-s.number) < int32(s.grant/8)
}

// WantCredit makes the Conn, if wanted is true, ask the peer for its limits as if a message were waiting for credit
// (E33), until WantCredit is called with false.
func (c *Conn) WantCredit(wanted bool) {
	if c.sends.wanted != wanted {
		c.sends.wanted, c.changed = wanted, true
	}
}

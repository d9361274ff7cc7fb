package extended

import "github.com/zrlmpi/zrlmpid/protocol"

// Conn is the state between a local rank and one peer. It is not safe for
// concurrent use. Every event appends its actions to the slice it is given and
// returns it, so that a caller that reuses the slice allocates nothing.
//
// Packets go out with Flush, which the caller calls after one event or a batch
// of them. It carries out the actions of each event before it feeds the next.
type Conn struct {
	cfg     Config
	random  random
	session session

	flight  flight     // packets of ours
	window  congestion // how many may be in flight
	trip    roundTrip  // how long they take
	timer   Instant    // from when the time-out of the oldest one counts, if that was sent before
	moved   Instant    // when something was last acknowledged, or the first packet sent after nothing was in flight
	stalled int        // time-outs since then
	urgent  bool       // a repeat after a time-out goes whatever the window says
	asked   uint32     // the last packet sent with ACK_NOW
	full    bool       // WindowFull was noted

	sends    sending
	controls controls
	arrivals arrivals
	recvs    receiving

	stats   Stats
	ackBuf  []byte // of the ACK of the last Flush
	helloBf []byte // of its HELLO, or its answer to a packet of another session
	ranges  []protocol.Range
}

// New returns the state before anything has been sent or received.
func New(cfg Config) *Conn {
	cfg = cfg.complete()
	c := &Conn{cfg: cfg, random: random(cfg.Seed)}
	c.ranges = make([]protocol.Range, 0, protocol.MaxAckRanges)
	c.session.local = c.random.session(0)
	c.reset()
	return c
}

// Config returns what the Conn was made with, defaults included.
func (c *Conn) Config() Config { return c.cfg }

// Packet takes a whole packet, header and payload, that came from the peer.
func (c *Conn) Packet(now Instant, packet []byte, acts []Action) []Action {
	h, payload, defect := protocol.ParseExtended(packet)
	if !defect.OK() {
		return c.drop(Reason(defect.Kind), protocol.ExtHeader{}, acts)
	}
	switch {
	case h.Src != c.cfg.Remote:
		return c.drop(ReasonSourceRank, h, acts)
	case h.Dst != c.cfg.Local:
		return c.drop(ReasonDestination, h, acts)
	}
	return c.parsed(now, &h, payload, acts)
}

// parsed takes a packet that E2 has no fault with, up to the ranks.
func (c *Conn) parsed(now Instant, h *protocol.ExtHeader, payload []byte, acts []Action) []Action {
	c.stats.PacketsReceived[h.Type]++
	c.stats.BytesReceived[h.Type] += uint64(len(payload))
	acts, known := c.identify(now, h, acts)
	if !known {
		if c.session.answer == h.Session && h.Flags&protocol.FlagHello != 0 {
			return acts // that is what a HELLO is for
		}
		return c.drop(ReasonSession, *h, acts)
	}
	c.session.heard = now
	c.session.unheard = 0
	if int32(h.Acknowledged-c.flight.next) > 0 {
		return c.drop(ReasonAcknowledged, *h, acts)
	}
	if h.Type == protocol.Ack {
		return c.onAck(now, h, payload, acts)
	}
	acts = c.acknowledged(now, h.Acknowledged, nil, acts)
	if !h.Numbered() {
		return c.onGoodbye(now, acts)
	}
	return c.onNumbered(now, h, payload, acts)
}

// onNumbered takes a packet that bears a number. One that makes no sense is not
// acknowledged, so that the peer finds out.
func (c *Conn) onNumbered(now Instant, h *protocol.ExtHeader, payload []byte, acts []Action) []Action {
	a := &c.arrivals
	if r := a.fate(h.Number); r != ReasonNone {
		a.now = a.now || r == ReasonDuplicate
		return c.drop(r, *h, acts)
	}
	turn := c.recvs.turn
	acts, r := c.deliver(now, h, payload, acts)
	if r != ReasonNone {
		acts = c.drop(r, *h, acts)
		if r != ReasonStale {
			return acts
		}
	}
	before := a.next
	if a.take(now, h.Number) {
		a.now = true
		c.stats.OutOfOrder++
	}
	if h.Flags&protocol.FlagAckNow != 0 || a.untold >= ackEvery {
		a.now = true
	}
	if c.recvs.held.count > 0 && (turn != c.recvs.turn || before != a.next) {
		acts = c.release(now, before, acts)
	}
	return acts
}

// deliver acts on a numbered packet that has not arrived before.
func (c *Conn) deliver(now Instant, h *protocol.ExtHeader, payload []byte, acts []Action) ([]Action, Reason) {
	switch h.Type {
	case protocol.SendRequest:
		return c.onRequest(now, h, payload, acts)
	case protocol.Data:
		return c.onData(now, h, payload, acts)
	case protocol.ClearToSend:
		return c.onClear(h, acts)
	}
	switch h.Code() {
	case protocol.CodeWithdraw:
		return c.onWithdraw(h, acts)
	case protocol.CodeWithdrawn:
		return c.onRefusal(now, h, ErrWithdrawn, acts)
	case protocol.CodeTooLong:
		return c.onRefusal(now, h, nil, acts)
	}
	return acts, ReasonCode
}

// Flush sends what the events since the last one have given cause for: packets
// as far as window and credit allow, and one ACK for all that has arrived.
func (c *Conn) Flush(now Instant, acts []Action) []Action {
	numbered := c.flight.order
	acts = c.forget(acts)
	if c.session.remote != 0 {
		acts = c.transmit(now, acts)
	}
	acts = c.ack(now, c.flight.order != numbered, acts)
	return c.sayHello(now, acts)
}

// Tick acts on every time that has been reached.
func (c *Conn) Tick(now Instant, acts []Action) []Action {
	if at, ok := c.retransmission(); ok && now >= at {
		acts = c.timedOut(now, acts)
	}
	if at, ok := c.arrivals.due(c.cfg.Timing.AckDelay); ok && now >= at {
		c.arrivals.now = true
	}
	return acts
}

// Deadline returns the time by which Tick and Flush are to be called, and false if nothing
// waits for a time. It is to be asked after Flush.
func (c *Conn) Deadline() (Instant, bool) {
	at, ok := c.retransmission()
	if t, on := c.arrivals.due(c.cfg.Timing.AckDelay); on && (!ok || t < at) {
		at, ok = t, true
	}
	if t, on := c.helloDue(); on && (!ok || t < at) {
		at, ok = t, true
	}
	return at, ok
}

// Reconnected tells a Conn on a Reliable transport that whatever was under way
// on the connection is lost (E41).
func (c *Conn) Reconnected(now Instant, acts []Action) []Action {
	if !c.cfg.Reliable {
		return acts
	}
	f := &c.flight
	for n := f.base; n != f.next; n++ {
		if p := f.at(n); p.state == packetSent {
			f.lose(p)
		}
	}
	c.timer, c.moved, c.stalled = now, now, 0
	c.session.hello, c.session.wait = now, c.cfg.Timing.HelloFirst
	return acts
}

// header begins a packet of ours.
func (c *Conn) header(t protocol.Type, call protocol.Call) protocol.ExtHeader {
	return protocol.ExtHeader{
		Dst: c.cfg.Remote, Src: c.cfg.Local, Type: t, Call: call,
		Session: c.session.local, PeerSession: c.session.remote, Acknowledged: c.arrivals.next,
	}
}

func (c *Conn) drop(r Reason, h protocol.ExtHeader, acts []Action) []Action {
	c.stats.Drops[r]++
	return append(acts, Action{Kind: Drop, Reason: r, Header: h})
}

func (c *Conn) note(e Event, acts []Action) []Action {
	c.stats.Events[e]++
	return append(acts, Action{Kind: Note, Event: e})
}

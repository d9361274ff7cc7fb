package extended

import (
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// SendState describes a send that has not ended. It is a Wait with the message's
// envelope.
type SendState struct {
	Wait
	Comm, Tag uint32
	// Announced is SendOp.Announce.
	Announced bool
}

// EachSend calls yield for every send that has not ended and does not rest, oldest first, until it
// returns false.
func (c *Conn) EachSend(yield func(SendState) bool) {
	for i := range c.path.shorts.len() {
		x := c.path.shorts.at(i)
		w := Wait{ID: shortID, State: Eager, Local: c.cfg.Local, Remote: c.cfg.Remote, Since: x.sent, Length: int64(x.length)}
		if !yield(SendState{Wait: w, Comm: x.comm, Tag: x.tag}) {
			return
		}
	}
	for m := c.sends.first; m != nil; m = m.after {
		if !yield(SendState{Wait: c.sends.wait(m), Comm: m.op.Comm, Tag: m.op.Tag, Announced: m.op.Announce}) {
			return
		}
	}
}

// Session returns the sessions of both sides; remote is 0 while it is not known.
func (c *Conn) Session() (local, remote protocol.Session) { return c.session.local, c.session.remote }

// ForeignVersion returns the version of the last packet of the peer that was of another version
// than protocol.ExtVersion, or 0 if there was none.
func (c *Conn) ForeignVersion() byte { return c.foreign }

// Busy reports whether a send has not ended, a packet of ours is not
// acknowledged, or a message that was matched is not complete.
func (c *Conn) Busy() bool {
	return c.sends.open() > 0 || c.path.flight.outstanding() > 0 || c.path.shorts.len() > 0 || !c.controls.empty() ||
		c.recvs.waiting > 0
}

// numTypes is the length of tables indexed by protocol.Type.
const numTypes = int(protocol.Error) + 1

// Counters count since New.
type Counters struct {
	// Packets, and bytes of their payload, by type, retransmissions included. What
	// was received includes all packets that are whole and meant for us.
	PacketsSent, PacketsReceived [numTypes]uint64
	BytesSent, BytesReceived     [numTypes]uint64
	// Retransmissions counts retransmitted packets, TimeOuts those of them for which the
	// time-out expired, and Losses those that were overtaken.
	Retransmissions, TimeOuts, Losses uint64
	// OutOfOrder counts packets that arrived before, or after, their place in the order.
	OutOfOrder uint64
	// Hellos counts HELLOs that were sent, but for probes of the path's MTU.
	Hellos uint64
	// Drops and Events count Drop and Note.
	Drops  [NumReasons]uint64
	Events [NumEvents]uint64
	// SendsEager counts messages that went eagerly, and Arrived the actions of this name.
	SendsEager, Arrived uint64
}

// Stats are the counters, and how things stand.
type Stats struct {
	Counters

	// RoundTrip is the smoothed round trip of E30 and Variation its
	// variation, 0 before the first measurement. TimeOut is as it stands,
	// doublings included.
	RoundTrip, Variation, TimeOut time.Duration
	// Stalled is since when nothing was acknowledged, if a time-out has expired since; otherwise 0.
	Stalled Instant
	// Window is how many packets may be in flight, InFlight how many are, and
	// ToRetransmit how many wait to be retransmitted.
	Window, InFlight, ToRetransmit int
	// Payload is the most bytes of payload of a packet, and Probes how many probes of that
	// were sent (E36).
	Payload int
	Probes  uint64
	// Queued are sends of which nothing was sent, Begun the others that have
	// not ended; Open are inbound messages that are not both matched and
	// complete, Held packets of messages whose predecessors are missing.
	Queued, Begun, Open, Held int
	// MessageCredit and EagerCredit are how many messages, and bytes of eager
	// ones, may be sent before the peer has to match one.
	MessageCredit, EagerCredit uint32
}

// Sends returns how many sends have not ended.
func (c *Conn) Sends() int { return c.sends.open() + c.path.shorts.len() }

// Stats returns the counters.
func (c *Conn) Stats() Stats {
	s := Stats{Counters: c.stats}
	s.RoundTrip, s.Variation, s.TimeOut = c.path.trip.smoothed, c.path.trip.variation, c.path.trip.rto
	if c.path.stalled > 0 {
		s.Stalled = c.path.moved
	}
	s.Window, s.InFlight = c.path.cwnd(), c.path.flight.count+c.path.shorts.len()
	s.ToRetransmit, s.Payload = int(c.path.flight.lost.count), int(c.path.payload)
	if c.path.search != nil {
		s.Probes = c.path.search.probes
	}
	s.Queued, s.Begun = c.Queued(), int(c.sends.begun)+c.sends.resting.len()+c.path.shorts.len()
	s.Open, s.Held = c.recvs.open(), len(c.recvs.held.packets)
	s.MessageCredit, s.EagerCredit = c.sends.limit-c.sends.number, c.sends.eagerLimit-c.sends.eagerSent
	return s
}

package extended

import (
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// SendState describes a pending send: its progress, as a Wait, and the envelope of its message.
type SendState struct {
	Wait
	Comm, Tag uint32
	// Announced is SendOp.Announce.
	Announced bool
}

// EachSend calls yield for every pending send that is not resting, oldest first, until yield returns false.
func (c *Conn) EachSend(yield func(SendState) bool) {
	for i := range c.path.shorts.len() {
		x := c.path.shorts.entry(i)
		w := Wait{ID: shortID, State: Eager, Local: c.cfg.Local, Remote: c.cfg.Remote, Since: x.sentAt,
			Length: int64(x.length)}
		if !yield(SendState{Wait: w, Comm: x.comm, Tag: x.tag}) {
			return
		}
	}
	for m := c.sends.first; m != nil; m = m.next {
		if !yield(SendState{Wait: c.sends.describeWait(m), Comm: m.op.Comm, Tag: m.op.Tag, Announced: m.op.Announce}) {
			return
		}
	}
}

// Sessions returns our session and the peer's. remote is 0 while the peer's session is unknown.
func (c *Conn) Sessions() (local, remote protocol.Session) { return c.session.local, c.session.remote }

// ForeignVersion returns the version of the last packet from the peer whose version was not protocol.ExtVersion, or 0.
func (c *Conn) ForeignVersion() byte { return c.foreignVersion }

// Busy reports whether a send is pending, a packet sent has not been acknowledged, or a matched message is not
// complete.
func (c *Conn) Busy() bool {
	return c.sends.numPending() > 0 || c.path.flight.outstanding() > 0 || c.path.shorts.len() > 0 || !c.controls.empty() ||
		c.recvs.acceptedOpen > 0
}

// numTypes is the length of arrays that are indexed by protocol.Type.
const numTypes = int(protocol.Error) + 1

// Counters count since New.
type Counters struct {
	// These fields count packets and payload bytes by packet type, including retransmissions. Received packets are
	// counted only if they are valid and addressed to this rank.
	PacketsSent, PacketsReceived [numTypes]uint64
	BytesSent, BytesReceived     [numTypes]uint64
	// Retransmissions counts packets that were retransmitted, Timeouts counts timeouts that expired, and Losses counts
	// packets that were declared lost because later packets overtook them.
	Retransmissions, Timeouts, Losses uint64
	// OutOfOrder counts packets that were received out of order.
	OutOfOrder uint64
	// Hellos counts the HELLOs sent, without the probes for path MTU discovery.
	Hellos uint64
	// Drops and Events count the Drop actions by Reason and the Note actions by Event.
	Drops  [NumReasons]uint64
	Events [NumEvents]uint64
	// EagerSends is the number of messages sent eagerly, and MessagesArrived the number of inbound messages that were
	// received completely.
	EagerSends, MessagesArrived uint64
}

// Stats holds the counters of a Conn and describes its current state.
type Stats struct {
	Counters

	// RoundTrip is the smoothed round-trip time, and Variation the average deviation from it (E30). Both are 0 before
	// the first measurement. Timeout is the current retransmission timeout, including doublings.
	RoundTrip, Variation, Timeout time.Duration
	// StalledSince is the time of the last acknowledgement if a timeout has expired since then, and otherwise 0.
	StalledSince Instant
	// Window is the maximum number of packets in flight, InFlight their current number, and ToRetransmit the number of
	// packets waiting to be retransmitted.
	Window, InFlight, ToRetransmit int
	// Payload is the maximum payload of a packet in bytes, and Probes the number of probes sent to find it (E36).
	Payload int
	Probes  uint64
	// QueuedSends is the number of sends that have not begun, and Begun the number of other pending sends. OpenMessages
	// is the number of inbound messages still unmatched or incomplete. HeldPackets is the number of packets kept
	// because earlier messages have not begun.
	QueuedSends, Begun, OpenMessages, HeldPackets int
	// MessageCredit and EagerCredit are the numbers of messages and of eager bytes that may be sent before the peer has
	// to match another message.
	MessageCredit, EagerCredit uint32
}

// PendingSends returns the number of pending sends.
func (c *Conn) PendingSends() int { return c.sends.numPending() + c.path.shorts.len() }

// Stats returns the counters of the Conn and its current state.
func (c *Conn) Stats() Stats {
	stats := Stats{Counters: c.stats}
	stats.RoundTrip, stats.Variation, stats.Timeout = c.path.rtt.smoothed, c.path.rtt.variation, c.path.rtt.rto
	if c.path.timeouts > 0 {
		stats.StalledSince = c.path.lastAckAt
	}
	stats.Window, stats.InFlight = c.path.cwnd(), c.path.flight.count+c.path.shorts.len()
	stats.ToRetransmit, stats.Payload = int(c.path.flight.lost.count), int(c.path.maxPayload)
	if c.path.search != nil {
		stats.Probes = c.path.search.probes
	}
	stats.QueuedSends, stats.Begun = c.NumQueued(), int(c.sends.begunSends)+c.sends.resting.len()+c.path.shorts.len()
	stats.OpenMessages, stats.HeldPackets = c.recvs.numOpen(), len(c.recvs.heldPackets.packets)
	stats.MessageCredit, stats.EagerCredit = c.sends.messageLimit-c.sends.number, c.sends.eagerLimit-c.sends.eagerSent
	return stats
}

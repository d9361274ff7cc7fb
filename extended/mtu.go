package extended

import (
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// How the size of packets follows the path's MTU (RFC 8899): E35 to E37. All sizes are bytes of
// payload, in multiples of 8, so that what is copied stays aligned.

const (
	// basePayload is what every path is assumed to carry: a datagram of 1200 bytes
	// (BASE_PLPMTU).
	basePayload = 1200 - protocol.ExtHeaderLen
	// ethernetPayload is what fits into 1500 bytes with the headers of IPv4 and UDP: the most
	// likely MTU of a path that has a smaller one than its first link.
	ethernetPayload = 1500 - 28 - protocol.ExtHeaderLen
	// maxProbes is how often a size is tried (MAX_PROBES), and how many long packets in a row
	// have to be lost for the path to be a black hole for them.
	maxProbes = 3
	// raiseAfter is how long a search holds (PMTU_RAISE_TIMER).
	raiseAfter = 600 * time.Second
)

// padding is what probes carry. It is never written to.
var padding [protocol.MaxUDPDatagram - protocol.ExtHeaderLen]byte

// search finds the largest payload that a path carries.
type search struct {
	// most is what the configuration lets, and limit what the first link does, too; 0 while
	// that is not known.
	most, limit int
	// size is known to arrive. tooLong does not, or is more than limit if no such is known.
	size, tooLong int
	// probe is the size that is tried, or 0. It was sent tries times, first at begun and
	// last at at; one time more than maxProbes if nothing of the peer has arrived meanwhile.
	probe, tries int
	begun, at    Instant
	raise        Instant // when to search again
	// arrived is the order of the last long packet that did, and lost how many later ones
	// did not.
	arrived uint64
	lost    int
	probes  uint64 // that were sent in all sessions
}

// restart begins a search with what the first link lets.
func (s *search) restart(limit int) {
	s.limit = min(limit, s.most) &^ 7
	s.size = min(max(s.size, basePayload), s.limit)
	s.tooLong = s.limit + 1
	s.advance()
}

// advance goes on to the next size.
func (s *search) advance() { s.probe, s.tries = s.next(), 0 }

// next returns the size to try next: first the most, as few paths have less than their first
// link, at last the middle of what is left. 0: the rest is not worth a probe.
func (s *search) next() int {
	middle := (s.size + s.tooLong) / 2 &^ 7
	switch {
	case s.size >= s.limit:
		return 0
	case s.tooLong > s.limit:
		return s.limit
	case s.size < ethernetPayload && ethernetPayload < s.tooLong:
		return ethernetPayload
	case middle-s.size <= s.size/64:
		return 0
	}
	return middle
}

// carried notes that so many bytes have arrived, and reports whether that is news. The answer may
// be late.
func (s *search) carried(n int) bool {
	if n <= s.size || n > s.limit {
		return false
	}
	s.size = n
	if n >= s.tooLong {
		s.tooLong = s.limit + 1
	}
	s.advance()
	return true
}

// due returns when to go on with the probe, or never, if packets of the peer last arrived at heard.
func (s *search) due(heard Instant, timeout time.Duration) Instant {
	switch {
	case s.probe == 0, s.tries > maxProbes && heard <= s.at:
		return never
	case s.tries == 0, s.tries > maxProbes:
		return 0
	}
	return s.at + timeout<<(s.tries-1)
}

// expired decides what is sent when a probe is due: the same one, the next one, or none. Probes are
// lost as well where the path carries nothing. They show something if others arrive meanwhile.
func (s *search) expired(now, heard Instant) (send bool) {
	switch {
	case s.tries == maxProbes && heard <= s.begun:
		s.tries++
		return false
	case s.tries == maxProbes:
		s.tooLong = s.probe
		s.advance()
	case s.tries > maxProbes:
		s.tries = 0
	}
	if s.probe == 0 {
		return false
	}
	if s.tries == 0 {
		s.begun = now
	}
	s.tries++
	s.at = now
	return true
}

// long reports whether a packet shows by its arrival or its loss what the path carries.
func (s *search) long(payload int) bool { return payload > basePayload && payload <= s.size }

// discovers reports whether the path of the session is searched.
func (r *recovery) discovers() bool { return r.search != nil && r.search.limit > 0 }

// askLink asks the caller for what the first link lets, for a search to begin.
func (r *recovery) askLink(now Instant) {
	if !r.cfg.Discover {
		return
	}
	if r.search == nil {
		r.search = new(search)
	}
	r.search.most, r.search.raise = r.cfg.MaxPayload, now+raiseAfter
	r.next().Kind = AskLink
}

// LinkLimit says how many bytes a datagram to the peer may have on the first link, as an answer to
// AskLink or when a packet was too long for it. 0 is not known: then it is 1416.
func (c *Conn) LinkLimit(datagram int) {
	if c.path.search == nil {
		return
	}
	payload := defaultPayload
	if datagram > 0 {
		payload = max(datagram-protocol.ExtHeaderLen, 8)
	}
	c.changed = true
	c.path.search.restart(payload)
	c.path.sized()
}

// sized takes the size that the search has found.
func (r *recovery) sized() {
	r.payload = int32(r.search.size)
	r.adapt()
}

// Payload returns the most bytes of payload that a packet has now. Retransmissions of packets that
// have more have to be fragmented (E37).
func (c *Conn) Payload() int { return int(c.path.payload) }

// probe goes on with the search (E36).
func (c *Conn) probe(now Instant) {
	s, heard := c.path.search, c.session.lastHeardAt
	if s.probe == 0 {
		if now >= s.raise && c.path.flight.count > 0 {
			c.path.askLink(now)
		}
		return
	}
	if now < c.path.probeDue(heard) || !s.expired(now, heard) {
		return
	}
	h := c.header(protocol.Ack, protocol.RecvInt)
	h.Flags |= protocol.FlagHello
	h.Clock = clockAt(now)
	if s.tries > 1 { // its answer shows that the path carries others
		hello := h
		c.stats.Hellos++
		c.appendAck(now, &hello)
	}
	h.Offset = uint32(s.probe)
	s.probes++
	c.transmitUnnumbered(TransmitAck, &h, padding[:s.probe])
}

// probeDue returns when to go on with the search, or never, if packets of the peer last arrived at heard.
func (r *recovery) probeDue(heard Instant) Instant {
	if !r.discovers() || r.search.probe == 0 {
		return never
	}
	return r.search.due(heard, r.trip.base(&r.cfg.Timing))
}

// onProbe takes a probe of the peer, which the next ACK answers.
func (c *Conn) onProbe(h *protocol.ExtHeader, payload []byte) {
	if int(h.Offset) != len(payload) || h.Call != protocol.RecvInt {
		c.drop(ReasonAcknowledged, h)
		return
	}
	a := &c.arrivals
	a.now, a.full, a.probe = true, true, h.Offset
}

// arrivedLong notes that a packet was acknowledged.
func (r *recovery) arrivedLong(p *packet) {
	if s := r.search; s.long(int(p.payload)) {
		s.arrived, s.lost = max(s.arrived, p.order), 0
	}
}

// lostLong notes that a packet was lost. When several long ones in a row were, and no later one has
// arrived, the path does not carry them any more (E37).
func (r *recovery) lostLong(now Instant, p *packet) {
	s := r.search
	if !s.long(int(p.payload)) || p.order <= s.arrived {
		return
	}
	if s.lost++; s.lost < maxProbes {
		return
	}
	s.lost, s.size, s.probe = 0, min(basePayload, s.limit), 0
	r.sized()
	r.note(BlackHole).Header = p.header
	r.askLink(now)
}

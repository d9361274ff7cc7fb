package extended

import (
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// Path MTU discovery (RFC 8899), rules E35 to E37. All sizes are bytes of payload, in multiples of 8, so that copies
// stay aligned.

const (
	// basePayload is the payload that every path is assumed to carry: of a datagram of 1200 bytes (BASE_PLPMTU).
	basePayload = 1200 - protocol.ExtHeaderLen
	// ethernetPayload is the payload that fits into 1500 bytes with the headers of IPv4 and UDP: the most likely MTU of
	// a path whose MTU is smaller than that of its first link.
	ethernetPayload = 1500 - 28 - protocol.ExtHeaderLen
	// maxProbes is the number of probes of a size (MAX_PROBES), and the number of consecutive losses of long packets
	// that show a black hole.
	maxProbes = 3
	// raiseAfter is the time after which the search is repeated (PMTU_RAISE_TIMER).
	raiseAfter = 600 * time.Second
)

// padding is the payload of probes. It is never written to.
var padding [protocol.MaxUDPDatagram - protocol.ExtHeaderLen]byte

// search finds the largest payload that a path carries.
type search struct {
	// most is the limit of the configuration. limit also takes account of the first link; it is 0 while the link's
	// limit is unknown.
	most, limit int
	// size is known to be carried. tooLong is known not to be carried, or is more than limit if no such size is known.
	size, tooLong int
	// probe is the size being tried, or 0. It was sent tries times, first at begun and last at at. tries is maxProbes
	// plus 1 if no packet of the peer was received since begun.
	probe, tries int
	begun, at    Instant
	raise        Instant // time of the next search
	// arrived is the order of the last long packet that was acknowledged, lost the number of later ones that were lost.
	arrived uint64
	lost    int
	probes  uint64 // probes sent in all sessions
}

// restart restarts the search with the limit of the first link.
func (s *search) restart(limit int) {
	s.limit = min(limit, s.most) &^ 7
	s.size = min(max(s.size, basePayload), s.limit)
	s.tooLong = s.limit + 1
	s.advance()
}

// advance continues with the next size.
func (s *search) advance() { s.probe, s.tries = s.next(), 0 }

// next returns the next size to try: first the limit, since few paths carry less than their first link, and finally the
// middle of the remaining range. It returns 0 if the rest is not worth a probe.
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

// carried records that a payload of n bytes was carried, and reports whether this is new. The answer to a probe may be
// late.
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

// due returns the time to continue with the probe, or never. heard is the time of the last packet from the peer.
func (s *search) due(heard Instant, timeout time.Duration) Instant {
	switch {
	case s.probe == 0, s.tries > maxProbes && heard <= s.at:
		return never
	case s.tries == 0, s.tries > maxProbes:
		return 0
	}
	return s.at + timeout<<(s.tries-1)
}

// expired decides what to do when a probe is due, and reports whether to send the current size, which may be a new one.
// Probes are also lost when the path carries nothing: their losses count only if other packets arrive meanwhile.
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

// long reports whether the receipt or loss of a packet shows the limit of the path.
func (s *search) long(payload int) bool { return payload > basePayload && payload <= s.size }

// discovers reports whether path MTU discovery is in use in this session.
func (r *recovery) discovers() bool { return r.search != nil && r.search.limit > 0 }

// askLink asks the caller for the limit of the first link, to start a search.
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

// LinkLimit sets the maximum length of a datagram to the peer on the first link, in bytes. It answers AskLink, or
// reports that a packet was too long for the link. 0 means unknown; 1416 is assumed then.
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

// sized applies the size found by the search.
func (r *recovery) sized() {
	r.payload = int32(r.search.size)
	r.adapt()
}

// Payload returns the current maximum payload of a packet, in bytes. Retransmissions of packets with more payload have
// to be fragmented (E37).
func (c *Conn) Payload() int { return int(c.path.payload) }

// probe continues the search (E36).
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
	if s.tries > 1 { // its answer shows that the path carries other packets
		hello := h
		c.stats.Hellos++
		c.appendAck(now, &hello)
	}
	h.Offset = uint32(s.probe)
	s.probes++
	c.transmitUnnumbered(TransmitAck, &h, padding[:s.probe])
}

// probeDue returns the time to continue the search, or never. heard is the time of the last packet from the peer.
func (r *recovery) probeDue(heard Instant) Instant {
	if !r.discovers() || r.search.probe == 0 {
		return never
	}
	return r.search.due(heard, r.trip.base(&r.cfg.Timing))
}

// onProbe handles a probe of the peer, which the next ACK answers.
func (c *Conn) onProbe(h *protocol.ExtHeader, payload []byte) {
	if int(h.Offset) != len(payload) || h.Call != protocol.RecvInt {
		c.drop(ReasonAcknowledged, h)
		return
	}
	a := &c.arrivals
	a.now, a.full, a.probe = true, true, h.Offset
}

// arrivedLong records the acknowledgement of a packet.
func (r *recovery) arrivedLong(p *packet) {
	if s := r.search; s.long(int(p.payload)) {
		s.arrived, s.lost = max(s.arrived, p.order), 0
	}
}

// lostLong records the loss of a packet. When several long packets in a row were lost and no later one was received,
// the path does not carry them any more (E37).
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

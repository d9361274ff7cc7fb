package extended

import (
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// Path MTU discovery (RFC 8899) follows rules E35 to E37. All sizes are in bytes of payload, and multiples of 8, so
// that copies stay aligned.

const (
	// basePayload is the payload of a datagram of 1200 bytes, which every path is assumed to carry (BASE_PLPMTU).
	basePayload = 1200 - protocol.ExtHeaderLen
	// ethernetPayload is the payload that fits into an IPv4 packet of 1500 bytes. That is the most likely MTU of a
	// path whose MTU is smaller than the MTU of its first link.
	ethernetPayload = 1500 - 28 - protocol.ExtHeaderLen
	// maxProbes is the maximum number of probes for one size (MAX_PROBES), and the number of consecutive losses of long
	// packets that indicate a black hole.
	maxProbes = 3
	// raiseAfter is the time after which the search is repeated (PMTU_RAISE_TIMER).
	raiseAfter = 600 * time.Second
)

// padding is the payload of probes. It is read-only.
var padding [protocol.MaxUDPDatagram - protocol.ExtHeaderLen]byte

// mtuSearch finds the largest payload that a path carries.
type mtuSearch struct {
	// maxPayload is the limit that the configuration sets. limit is the minimum of maxPayload and the limit of the
	// first link, or 0 while the link's limit is unknown.
	maxPayload, limit int
	// size is the largest payload that the path is known to carry. tooLong is the smallest payload that it is known not
	// to carry, or limit plus 1 if none is known.
	size, tooLong int
	// probeSize is the size being probed, or 0 if the search is complete. tries is the number of its probes, sent first
	// at firstProbeAt and last at lastProbeAt. If all maxProbes were lost and no packet from the peer was received
	// since firstProbeAt, tries is raised to maxProbes plus 1, and the search pauses.
	probeSize, tries          int
	firstProbeAt, lastProbeAt Instant
	nextSearchAt              Instant // time of the next search
	// longAcked is the highest order of an acknowledged long packet, and longLost the number of long packets sent later
	// that were lost.
	longAcked uint64
	longLost  int
	probes    uint64 // probes sent in all sessions
}

// restart begins a new search, which does not exceed the given limit of the first link.
func (s *mtuSearch) restart(limit int) {
	s.limit = min(limit, s.maxPayload) &^ 7
	s.size = min(max(s.size, basePayload), s.limit)
	s.tooLong = s.limit + 1
	s.advance()
}

// advance continues the search with the next size.
func (s *mtuSearch) advance() { s.probeSize, s.tries = s.nextSize(), 0 }

// nextSize returns the next size to try: first the limit, since few paths carry less than their first link, then the
// payload for Ethernet, and then the middle of the remaining range. It returns 0 if that range is not worth a probe.
func (s *mtuSearch) nextSize() int {
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

// confirm records that the path has carried a payload of n bytes, and reports whether that is new information. n may be
// a size tried earlier, because the answer to a probe may be late.
func (s *mtuSearch) confirm(n int) bool {
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

// deadline returns the time at which the method expired must be called, or never. The parameter heard is the time of
// the last packet from the peer.
func (s *mtuSearch) deadline(heard Instant, timeout time.Duration) Instant {
	switch {
	case s.probeSize == 0, s.tries > maxProbes && heard <= s.lastProbeAt:
		return never
	case s.tries == 0, s.tries > maxProbes:
		return 0
	}
	return s.lastProbeAt + timeout<<(s.tries-1)
}

// expired decides how to continue when the deadline has passed. It reports whether to send a probe of the current size,
// which may be a new one. A path that carries nothing at all also loses probes, so their losses count only if other
// packets arrived from the peer meanwhile.
func (s *mtuSearch) expired(now, heard Instant) (send bool) {
	switch {
	case s.tries == maxProbes && heard <= s.firstProbeAt:
		s.tries++
		return false
	case s.tries == maxProbes:
		s.tooLong = s.probeSize
		s.advance()
	case s.tries > maxProbes:
		s.tries = 0
	}
	if s.probeSize == 0 {
		return false
	}
	if s.tries == 0 {
		s.firstProbeAt = now
	}
	s.tries++
	s.lastProbeAt = now
	return true
}

// isLong reports whether a packet with the given payload is long, so that its receipt or loss is evidence of the path
// MTU.
func (s *mtuSearch) isLong(payload int) bool { return payload > basePayload && payload <= s.size }

// usesDiscovery reports whether this session uses path MTU discovery and knows the limit of the first link.
func (r *recovery) usesDiscovery() bool { return r.search != nil && r.search.limit > 0 }

// askLink asks the caller for the limit of the first link. The answer starts a search.
func (r *recovery) askLink(now Instant) {
	if !r.cfg.Discover {
		return
	}
	if r.search == nil {
		r.search = new(mtuSearch)
	}
	r.search.maxPayload, r.search.nextSearchAt = r.cfg.MaxPayload, now+raiseAfter
	r.nextAction().Kind = AskLink
}

// LinkLimit sets the maximum length of a datagram to the peer on the first link, in bytes. If it is 0, the length is
// unknown and 1416 is assumed. Call it in answer to AskLink, or after a packet was too long for the link.
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
	c.path.applySize()
}

// applySize makes the payload size that the search has found the maximum for new packets.
func (r *recovery) applySize() {
	r.maxPayload = int32(r.search.size)
	r.adaptLimits()
}

// Payload returns the current maximum payload of a packet, in bytes. A packet that was first sent with more payload has
// to be fragmented when it is retransmitted (E37).
func (c *Conn) Payload() int { return int(c.path.maxPayload) }

// sendDueProbe continues the search (E36).
func (c *Conn) sendDueProbe(now Instant) {
	search, heard := c.path.search, c.session.lastPacketAt
	if search.probeSize == 0 {
		if now >= search.nextSearchAt && c.path.flight.count > 0 {
			c.path.askLink(now)
		}
		return
	}
	if now < c.path.probeDue(heard) || !search.expired(now, heard) {
		return
	}
	header := c.header(protocol.Ack, protocol.RecvInt)
	header.Flags |= protocol.FlagHello
	header.Clock = clockAt(now)
	if search.tries > 1 { // the peer's answer shows that the path carries other packets
		hello := header
		c.stats.Hellos++
		c.appendAck(now, &hello)
	}
	header.Offset = uint32(search.probeSize)
	search.probes++
	c.transmitUnnumbered(TransmitAck, &header, padding[:search.probeSize])
}

// probeDue returns the time at which to continue the search, or never. heard is the time of the last packet from the
// peer.
func (r *recovery) probeDue(heard Instant) Instant {
	if !r.usesDiscovery() || r.search.probeSize == 0 {
		return never
	}
	return r.search.deadline(heard, r.rtt.baseTimeout(&r.cfg.Timing))
}

// onProbe handles a probe from the peer. The next ACK answers it.
func (c *Conn) onProbe(header *protocol.ExtHeader, payload []byte) {
	if int(header.Offset) != len(payload) || header.Call != protocol.RecvInt {
		c.drop(ReasonAcknowledged, header)
		return
	}
	a := &c.arrivals
	a.ackNow, a.needsFullAck, a.probeLen = true, true, header.Offset
}

// onLongAcked records the acknowledgement of p if p is long.
func (r *recovery) onLongAcked(p *packet) {
	if s := r.search; s.isLong(int(p.payload)) {
		s.longAcked, s.longLost = max(s.longAcked, p.order), 0
	}
}

// onLongLost records the loss of p if p is long. If several long packets were lost and none sent later was received,
// the path no longer carries packets of that size, and a new search begins (E37).
func (r *recovery) onLongLost(now Instant, pkt *packet) {
	search := r.search
	if !search.isLong(int(pkt.payload)) || pkt.order <= search.longAcked {
		return
	}
	if search.longLost++; search.longLost < maxProbes {
		return
	}
	search.longLost, search.size, search.probeSize = 0, min(basePayload, search.limit), 0
	r.applySize()
	r.note(BlackHole).Header = pkt.header
	r.askLink(now)
}

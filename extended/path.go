package extended

import "time"

// shortWindow is the maximum number of packets in flight on a path that is not long. Every peer accepts that many (E28,
// E32).
const shortWindow = 512

// bufferedTrip is the round-trip time up to which all data in flight must fit into the peer's socket buffer. On longer
// paths, most of the data is in the network (E28).
const bufferedTrip = 4 * time.Millisecond

// maxBytes is the maximum payload in flight on any path, in bytes (E28).
const maxBytes = 32 << 20

// adapt adapts the limits for packets and bytes in flight to the minimum round-trip time.
func (r *recovery) adapt() {
	least := r.trip.least
	r.paced = !r.cfg.Reliable && least >= longTrip
	r.most, r.bytes = min(r.cfg.Window, shortWindow), int64(r.cfg.WindowBytes)
	if r.paced {
		r.most = min(r.cfg.Window, int(r.peerWindow))
		r.bytes = max(r.bytes, min(r.bytes*int64(least/bufferedTrip), maxBytes))
	} else {
		r.pace.held = false
	}
	if r.cfg.Discover { // space for two packets, so that not every packet waits for an ACK
		r.bytes = max(r.bytes, 2*int64(r.payload))
	}
}

// reordering describes how far the path reorders packets, as observed from packets that were merely late.
type reordering struct {
	packets uint32 // number of overtaking packets after which a packet is lost
	late    uint8  // number of doublings of the time after which an overtaken packet is lost
	byTime  bool   // the last loss was detected by time, not by the number of packets
	// from is the order of the first transmission whose lateness gives new information.
	from uint64
}

// minReordering is the initial value of reordering.packets (RFC 9002, section 6.1.1), and maxReordering its maximum.
// maxLate is the maximum of reordering.late, and leastReordered the minimum of reordering.window before doublings.
const (
	minReordering  = 3
	maxReordering  = 1 << 12
	maxLate        = 5
	leastReordered = time.Millisecond
)

// window returns the time by which an acknowledged packet must have been sent after an overtaken one for the overtaken
// one to be declared lost.
func (r *reordering) window(trip *roundTrip) time.Duration {
	if !trip.known() {
		return trip.rto
	}
	return min(max(trip.smoothed/8, leastReordered), trip.smoothed) << r.late
}

// overtakenUntil returns the time at which an overtaken packet is declared lost.
func (r *recovery) overtakenUntil(p *packet) Instant {
	return p.sent + max(r.trip.smoothed, r.trip.latest) + r.reordering.window(&r.trip)
}

// late handles a packet that was declared lost but was merely late, as is known from an acknowledgement that arrived
// too early to be for the retransmission.
func (r *recovery) late(p *packet) {
	o := &r.reordering
	if !r.window.late(p.order, p.state == packetSent) || p.order < o.from {
		return
	}
	o.from = r.flight.order + 1
	if o.byTime {
		o.late = min(o.late+1, maxLate)
	} else {
		o.packets = min(2*o.packets, maxReordering)
	}
}

// resume records that a packet is sent while no other is in flight.
func (r *recovery) resume(now Instant) {
	if r.paced {
		r.window.idle(now-r.moved, max(r.trip.rto, minIdle))
	}
	r.moved, r.stalled, r.window.at = now, 0, now
}

// minIdle is the shortest pause after which the congestion window is reduced. It is the usual minimum time-out of TCP.
const minIdle = 200 * time.Millisecond

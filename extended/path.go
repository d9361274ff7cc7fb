package extended

import "time"

// shortWindow is the maximum number of packets in flight on a path that is not long, which every peer accepts (E28,
// E32).
const shortWindow = 512

// bufferedTrip is the longest round trip for which all data in flight must fit into the socket buffer of the peer. On
// longer paths most of it is in the network (E28).
const bufferedTrip = 4 * time.Millisecond

// maxBytes is the maximum payload in flight on any path, in bytes (E28).
const maxBytes = 32 << 20

// adapt adapts the limits of packets and bytes in flight to the minimum round trip.
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
	if r.cfg.Discover { // two packets, so that not each has to be acknowledged before the next
		r.bytes = max(r.bytes, 2*int64(r.payload))
	}
}

// reordering is the reordering observed so far of packets that were merely late.
type reordering struct {
	packets uint32 // number of overtaking packets after which a packet is lost
	late    uint8  // time after which an overtaken packet is lost, as doublings
	byTime  bool   // the last loss was found by the time
	// from is the first retransmission that gives new information.
	from uint64
}

// minReordering is the initial number of overtaking packets after which a packet is lost (RFC 9002, section 6.1.1).
const (
	minReordering  = 3
	maxReordering  = 1 << 12
	maxLate        = 5
	leastReordered = time.Millisecond
)

// window returns how much later than an overtaken packet the overtaking one must have been sent, for the former to be
// lost.
func (r *reordering) window(trip *roundTrip) time.Duration {
	if !trip.known() {
		return trip.rto
	}
	return min(max(trip.smoothed/8, leastReordered), trip.smoothed) << r.late
}

// overtakenUntil returns the time at which an overtaken packet is lost.
func (r *recovery) overtakenUntil(p *packet) Instant {
	return p.sent + max(r.trip.smoothed, r.trip.latest) + r.reordering.window(&r.trip)
}

// late handles a packet that was declared lost and was merely late: it was acknowledged before an acknowledgement of
// its retransmission could arrive.
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

// resume records that a packet is sent when none was in flight.
func (r *recovery) resume(now Instant) {
	if r.paced {
		r.window.idle(now-r.moved, max(r.trip.rto, minIdle))
	}
	r.moved, r.stalled, r.window.at = now, 0, now
}

// minIdle is the shortest pause after which the congestion window is reduced: the minimum time-out of a TCP.
const minIdle = 200 * time.Millisecond

package extended

import "time"

// shortWindow is the most packets in flight on a path that is not long, and what every peer takes (E28, E32).
const shortWindow = 512

// bufferedTrip is how long a round trip may be for the socket's buffer of a peer to hold all
// that is in flight: on longer paths most of that is in the network (E28).
const bufferedTrip = 4 * time.Millisecond

// maxBytes is the most payload in flight on any path (E28).
const maxBytes = 32 << 20

// adapt adapts to the least round trip what may be in flight.
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

// reordering is what is known of packets that were overtaken and only late.
type reordering struct {
	packets uint32 // by how many a packet may be overtaken before it is lost
	late    uint8  // by how long, as doublings
	byTime  bool   // the last loss was found by that
	// from is the first retransmission that shows anything new.
	from uint64
}

// minReordering is by how many packets one may be overtaken at first (RFC 9002, section 6.1.1).
const (
	minReordering  = 3
	maxReordering  = 1 << 12
	maxLate        = 5
	leastReordered = time.Millisecond
)

// window is how much later than a packet one may have been sent that has overtaken it.
func (r *reordering) window(trip *roundTrip) time.Duration {
	if !trip.known() {
		return trip.rto
	}
	return min(max(trip.smoothed/8, leastReordered), trip.smoothed) << r.late
}

// overtakenUntil returns when a packet is lost that was overtaken.
func (r *recovery) overtakenUntil(p *packet) Instant {
	return p.sent + max(r.trip.smoothed, r.trip.latest) + r.reordering.window(&r.trip)
}

// late notes that a packet was declared lost and has only been late: it has been acknowledged before an
// acknowledgement of its retransmission could have come.
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

// resume notes that a packet is sent after a time when there was none in flight.
func (r *recovery) resume(now Instant) {
	if r.paced {
		r.window.idle(now-r.moved, max(r.trip.rto, minIdle))
	}
	r.moved, r.stalled, r.window.at = now, 0, now
}

// minIdle is the shortest pause after which the window is not trusted any more: the least
// time-out of a TCP.
const minIdle = 200 * time.Millisecond

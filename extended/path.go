package extended

import "time"

// shortWindow is the maximum number of packets in flight, unless the path is long. Every peer accepts this number (E28,
// E32).
const shortWindow = 512

// bufferedRTT is the longest round-trip time for which all data in flight must fit into the peer's socket buffer. On
// paths with longer times, most of the data is in the network (E28).
const bufferedRTT = 4 * time.Millisecond

// maxBytes is the maximum payload in flight on any path, in bytes (E28).
const maxBytes = 32 << 20

// adaptLimits adapts the maximum numbers of packets and bytes in flight to the minimum round-trip time.
func (r *recovery) adaptLimits() {
	least := r.rtt.minRTT
	r.paced = !r.cfg.Reliable && least >= longRTT
	r.maxInFlight, r.maxFlightBytes = min(r.cfg.Window, shortWindow), int64(r.cfg.WindowBytes)
	if r.paced {
		r.maxInFlight = min(r.cfg.Window, int(r.peerWindow))
		r.maxFlightBytes = max(r.maxFlightBytes, min(r.maxFlightBytes*int64(least/bufferedRTT), maxBytes))
	} else {
		r.pacer.waiting = false
	}
	if r.cfg.Discover { // space for two packets, so that not every packet waits for an ACK
		r.maxFlightBytes = max(r.maxFlightBytes, 2*int64(r.maxPayload))
	}
}

// reordering describes how far the path reorders packets, as observed from packets that were merely late.
type reordering struct {
	packetThreshold uint32 // a packet overtaken by this number of packets is lost
	doublings       uint8  // number of times that timeThreshold was doubled
	byTime          bool   // the last loss was detected by time, not by the number of packets
	// minOrder is the order of a transmission. Earlier transmissions that prove to be late do not change the
	// thresholds, because the thresholds have already been raised since.
	minOrder uint64
}

// minReordering is the initial value of reordering.packetThreshold (RFC 9002, section 6.1.1), and maxReordering its
// maximum. maxDoublings limits reordering.doublings. minTimeThreshold is the minimum that reordering.timeThreshold
// applies before doubling.
const (
	minReordering    = 3
	maxReordering    = 1 << 12
	maxDoublings     = 5
	minTimeThreshold = time.Millisecond
)

// timeThreshold returns the tolerated reordering in time: an overtaken packet is declared lost once another one that
// was sent at least this much later has been acknowledged.
func (r *reordering) timeThreshold(trip *rttEstimator) time.Duration {
	if !trip.isMeasured() {
		return trip.rto
	}
	return min(max(trip.smoothed/8, minTimeThreshold), trip.smoothed) << r.doublings
}

// lossTime returns the time at which an overtaken packet is declared lost if it has not been acknowledged.
func (r *recovery) lossTime(p *packet) Instant {
	return p.sentAt + max(r.rtt.smoothed, r.rtt.latest) + r.reordering.timeThreshold(&r.rtt)
}

// onLatePacket handles a packet that was declared lost but was merely late: its acknowledgement arrived before a
// retransmission could have been acknowledged.
func (r *recovery) onLatePacket(p *packet) {
	o := &r.reordering
	if !r.window.onLate(p.order, p.state == packetSent) || p.order < o.minOrder {
		return
	}
	o.minOrder = r.flight.order + 1
	if o.byTime {
		o.doublings = min(o.doublings+1, maxDoublings)
	} else {
		o.packetThreshold = min(2*o.packetThreshold, maxReordering)
	}
}

// onResume is called when a packet is sent while no other packet is in flight, so that sending resumes after a pause.
func (r *recovery) onResume(now Instant) {
	if r.paced {
		r.window.afterIdle(now-r.lastAckAt, max(r.rtt.rto, minIdle))
	}
	r.lastAckAt, r.timeouts, r.window.lastAckAt = now, 0, now
}

// minIdle is the shortest pause after which the congestion window is reduced. Its value is TCP's usual minimum timeout.
const minIdle = 200 * time.Millisecond

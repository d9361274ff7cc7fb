package extended

import "time"

// minStalls is the minimum number of unsuccessful attempts before a peer is declared unreachable. Elapsed time alone is
// not enough, because our own process may have stalled.
const minStalls = 3

// persistentTimeOuts is the number of consecutive time-outs that indicate persistent congestion (RFC 9002, section
// 7.6).
const persistentTimeOuts = 3

// recovery tracks and limits our packets in flight, measures the path and detects losses, as in RFC 9002.
type recovery struct {
	*common
	flight     flight
	shorts     *shorts    // the packets numbered after flight; nil without ShortHeaders
	window     congestion // congestion window
	most       int        // maximum number of packets in flight on this path
	bytes      int64      // maximum payload in flight on this path, in bytes
	pace       pacer      // used only if paced
	trip       roundTrip  // round trip estimate
	reordering reordering
	suspect    suspect // the packet whose time-out was the first to expire
	search     *search // path MTU discovery, or nil if the payload is fixed
	timer      Instant // the time-out of the oldest packet starts here, or when it was sent, if that is later
	moved      Instant // time of the last acknowledgement, or of the first packet after a pause
	stalled    int32   // number of time-outs since moved
	peerWindow int32   // maximum number of packets in flight that the peer accepts
	asked      uint32  // number of the last packet sent with FlagAckNow
	payload    int32   // maximum payload of a packet on the network, in bytes
	long       int32   // maximum payload of a packet that the peer fetches, in bytes, or 0
	urgent     bool    // the next retransmission follows a time-out and ignores the window
	paced      bool    // the path is long (longTrip), so packets are paced
	limited    bool    // the last Flush stopped at the window
	full       bool    // WindowFull was noted
}

// reset begins a new session, with nothing in flight.
func (r *recovery) reset() {
	r.flight.reset(r.cfg.firstPacket)
	r.window.reset()
	r.trip.reset(&r.cfg.Timing)
	r.reordering = reordering{packets: minReordering}
	r.pace, r.limited, r.paced, r.full, r.peerWindow = pacer{}, false, false, false, shortWindow
	r.payload = int32(r.cfg.MaxPayload)
	if r.cfg.Discover {
		r.payload = min(r.payload, basePayload)
	}
	if s := r.search; s != nil {
		*s = search{probes: s.probes}
	}
	r.stalled, r.urgent, r.asked, r.suspect = 0, false, r.cfg.firstPacket-1, suspect{}
	r.adapt()
}

// cwnd returns the maximum number of packets in flight. Packets carried by memory have no congestion window.
func (r *recovery) cwnd() int {
	if r.cfg.ShortHeaders {
		return r.most
	}
	return min(r.window.packets, r.most)
}

// exceedsWindow reports whether sending payload more bytes would exceed the limit of bytes in flight (E28).
func (r *recovery) exceedsWindow(payload int64) bool {
	return r.flight.bytes > 0 && payload > 0 && r.flight.bytes+payload > r.bytes
}

// measured records the round-trip time of the transmission with the given order. order is 0 if unknown.
func (r *recovery) measured(trip time.Duration, order uint64) {
	least := r.trip.least
	r.trip.measured(trip, &r.cfg.Timing)
	if r.trip.least != least {
		r.adapt()
	}
	if r.paced && r.window.slowStart() && r.window.slow.measured(trip, order, r.flight.order+1) {
		r.window.avoid()
	}
}

// detectLoss declares a packet lost if it was overtaken by more packets, or by a longer time, than the reordering
// observed so far explains (E29).
func (r *recovery) detectLoss(now Instant) {
	f := &r.flight
	for p := f.oldest(); p != nil && f.overtaken(p); p = f.oldest() {
		byOrder := f.newest-p.order >= uint64(r.reordering.packets)
		if !byOrder && f.newestSent-p.sent < r.reordering.window(&r.trip) && now < r.overtakenUntil(p) {
			return
		}
		r.reordering.byTime = !byOrder
		f.lose(p)
		r.window.lost(p.order, f.order+1)
		r.suspect = suspect{}
		r.stats.Losses++
		r.note(LossDetected).Header = p.header
		if r.search != nil {
			r.lostLong(now, p)
		}
	}
}

// suspect is the packet whose time-out expired. It is kept from the first of several consecutive time-outs until it is
// known whether the packet's first transmission was lost or merely late (E30). clock is the clock at that time-out, or
// 0 if there is no suspect.
type suspect struct {
	number, clock uint32
	order         uint64 // of the first transmission
	timeOuts      int
}

// judge decides whether the suspect, which has now been acknowledged, was lost or merely late. If the echoed clock
// precedes the time-out, the first transmission was received: the round-trip time has increased, and nothing was lost.
// Eifel (RFC 3522) uses the same method.
func (r *recovery) judge(echo uint32, trip time.Duration) {
	s := r.suspect
	r.suspect = suspect{}
	if int32(echo-s.clock) >= 0 {
		r.window.lost(s.order, r.flight.order+1)
		r.window.keep()
		if s.timeOuts >= persistentTimeOuts {
			r.window.collapse()
		}
		return
	}
	// The measurements before the increase are no longer valid (RFC 4015).
	r.trip.reset(&r.cfg.Timing)
	r.measured(trip, 0)
	r.note(Spurious)
}

// retransmission returns the time at which p, the oldest packet in flight, is retransmitted or the peer is declared
// unreachable.
func (r *recovery) retransmission(p *packet) Instant {
	at := max(p.sent, r.timer) + r.trip.rto
	after := r.cfg.Timing.UnreachableAfter
	if end := r.moved + after; after > 0 && r.stalled >= minStalls && end > r.timer {
		at = min(at, end) // the peer had some time to answer the last retransmission
	}
	return at
}

// unreachable reports whether the peer must be declared unreachable, because it has acknowledged nothing for
// UnreachableAfter (E31).
func (r *recovery) unreachable(now Instant) bool {
	after := r.cfg.Timing.UnreachableAfter
	return after > 0 && r.stalled >= minStalls && now-r.moved >= after
}

// timedOut marks a single packet for retransmission: the oldest packet in flight after the first time-out, and the
// first unacknowledged packet after further ones (E29, E30).
func (r *recovery) timedOut(now Instant, rng *random) {
	f := &r.flight
	p := f.oldest()
	if first := f.at(f.base); r.stalled > 0 && first.state == packetSent {
		p = first // its receipt is reported by every packet from the peer, not only by ACKs
	}
	if r.suspect.clock == 0 {
		r.suspect = suspect{number: p.header.Number, order: p.order, clock: clockAt(now)}
	}
	r.suspect.timeOuts++
	r.window.keep()
	f.lose(p)
	r.trip.timedOut(&r.cfg.Timing, rng)
	r.timer, r.urgent = now, true
	r.stalled++
	r.stats.TimeOuts++
	r.note(TimedOut).Header = p.header
	if r.search != nil {
		r.lostLong(now, p)
	}
}

// timeShorts sets the send time of the short messages that were sent without one to now.
func (r *recovery) timeShorts(now Instant) {
	q := r.shorts
	if q == nil || q.untimed == 0 {
		return
	}
	if q.untimed = min(q.untimed, q.count); q.untimed == q.count && r.flight.outstanding() == 0 {
		r.resume(now)
	}
	for i := q.count - q.untimed; i < q.count; i++ {
		q.at(i).sent = now
	}
	q.untimed = 0
}

// unused returns the number of the next packet to be sent.
func (r *recovery) unused() uint32 { return r.flight.next + uint32(r.shorts.len()) }

// shortsAcked handles the acknowledgement of the first n short messages, of which there are at least n. All packets
// sent before them are acknowledged, so flight is empty.
func (r *recovery) shortsAcked(now Instant, n uint32) {
	for range n {
		r.shorts.pop()
	}
	r.shorts.untimed = min(r.shorts.untimed, r.shorts.count)
	f := &r.flight
	f.next += n
	f.base, f.fresh = f.next, f.next
	r.moved, r.timer, r.stalled = now, now, 0
}

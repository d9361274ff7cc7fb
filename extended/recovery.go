package extended

import "time"

// minStalls is how often a peer must have been asked without success before it is declared
// unreachable: that a whole program was held up is no fault of its peer.
const minStalls = 3

// persistentTimeOuts is how many time-outs in a row show that the path has carried nothing for
// longer than three of them (RFC 9002, section 7.6).
const persistentTimeOuts = 3

// recovery tracks our packets in flight, measures the path, detects losses and bounds how much may be in flight, as in
// RFC 9002.
type recovery struct {
	*common
	flight     flight
	shorts     *shorts    // the packets after those of flight; nil if ShortHeaders is not set
	window     congestion // how many may be in flight
	most       int        // the most that may ever be, on this path
	bytes      int64      // of payload that may be in flight, on this path
	pace       pacer      // if paced
	trip       roundTrip  // how long they take
	reordering reordering
	suspect    suspect // the packet whose time-out expired first
	search     *search // for payload, if it is not fixed
	timer      Instant // from when the time-out of the oldest one counts, if that was sent before
	moved      Instant // when something was last acknowledged, or the first packet sent after nothing was in flight
	stalled    int32   // time-outs since then
	peerWindow int32   // how many packets the peer takes in flight
	asked      uint32  // the last packet sent with ACK_NOW
	payload    int32   // most bytes of payload of a packet that the network carries
	long       int32   // most bytes of payload of DATA that the peer fetches, or 0
	urgent     bool    // a retransmission after a time-out goes whatever the window says
	paced      bool    // the path is long
	limited    bool    // the window ended the last Flush
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

// cwnd is how many packets may be in flight. Memory has no congestion.
func (r *recovery) cwnd() int {
	if r.cfg.ShortHeaders {
		return r.most
	}
	return min(r.window.packets, r.most)
}

// exceedsWindow reports whether so many bytes more in flight would exceed WindowBytes (E28).
func (r *recovery) exceedsWindow(payload int64) bool {
	return r.flight.bytes > 0 && payload > 0 && r.flight.bytes+payload > r.bytes
}

// measured takes a round trip, of the transmission of that order if it is known.
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

// detectLoss finds the packets that were overtaken by more, or by longer, than is known of
// packets that were only late (E29).
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

// suspect is the packet whose time-out expired, from the first time-out without success until it
// is known whether its first transmission was lost or late (E30). clock is 0 if there is
// none: then it is the time of the time-out.
type suspect struct {
	number, clock uint32
	order         uint64 // of the first transmission
	timeOuts      int
}

// judge decides on it, as it was acknowledged. If nothing that was sent since the time-out
// had arrived then, its first transmission had, as Eifel (RFC 3522) determines by the same
// means: the round trip has become longer, and nothing was lost.
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
	// What was measured before says nothing any more (RFC 4015).
	r.trip.reset(&r.cfg.Timing)
	r.measured(trip, 0)
	r.note(Spurious)
}

// retransmission returns when the time-out of the oldest transmission, that of p, expires,
// or the peer is declared unreachable.
func (r *recovery) retransmission(p *packet) Instant {
	at := max(p.sent, r.timer) + r.trip.rto
	after := r.cfg.Timing.UnreachableAfter
	if end := r.moved + after; after > 0 && r.stalled >= minStalls && end > r.timer {
		at = min(at, end) // the last retransmission has had its time, or part of it
	}
	return at
}

// unreachable reports whether the peer acknowledged nothing for UnreachableAfter (E31).
func (r *recovery) unreachable(now Instant) bool {
	after := r.cfg.Timing.UnreachableAfter
	return after > 0 && r.stalled >= minStalls && now-r.moved >= after
}

// timedOut retransmits the packet that was sent the longest ago, and only it, or the
// first one that is missing if that was without success (E29, E30).
func (r *recovery) timedOut(now Instant, rng *random) {
	f := &r.flight
	p := f.oldest()
	if first := f.at(f.base); r.stalled > 0 && first.state == packetSent {
		p = first // every packet of the peer acknowledges this one when it has arrived
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

// timeShorts notes when the last messages were sent, at the latest.
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

// unused is the number of the first packet that was not sent.
func (r *recovery) unused() uint32 { return r.flight.next + uint32(r.shorts.len()) }

// shortsAcked notes that the first n are acknowledged. There are so many, and all that was sent before them
// is acknowledged: the flight is empty.
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

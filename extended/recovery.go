package extended

import "time"

// minStalls is the minimum number of unanswered attempts before a peer is declared unreachable. Elapsed time alone is
// not enough, because our own process may have stalled.
const minStalls = 3

// persistentTimeouts is the number of consecutive timeouts that indicate persistent congestion (RFC 9002, section
// 7.6).
const persistentTimeouts = 3

// recovery tracks and limits our packets in flight, measures the path and detects losses, as in RFC 9002.
type recovery struct {
	*common
	flight          flight
	shorts          *shorts      // the packets numbered after flight; nil without ShortHeaders
	window          congestion   // congestion window
	maxInFlight     int          // maximum number of packets in flight on this path
	maxFlightBytes  int64        // maximum payload in flight on this path, in bytes
	pacer           pacer        // used only if paced
	rtt             rttEstimator // round trip estimate
	reordering      reordering
	suspect         suspect    // the packet whose timeout was the first to expire
	search          *mtuSearch // path MTU discovery, or nil if the payload is fixed
	timerStart      Instant    // start of the oldest packet's timeout, unless the packet was sent later
	lastAckAt       Instant    // time of the last acknowledgement, or of the first packet after a pause
	timeouts        int32      // number of timeouts since lastAckAt
	peerWindow      int32      // maximum number of packets in flight that the peer accepts
	lastAckNow      uint32     // number of the last packet sent with FlagAckNow
	maxPayload      int32      // maximum payload of a packet on the network, in bytes
	fetchPayload    int32      // maximum payload of a packet that the peer fetches, in bytes, or 0
	bypassWindow    bool       // the next retransmission follows a timeout and ignores the window
	paced           bool       // the path is long (longRTT), so packets are paced
	windowLimited   bool       // the last Flush stopped at the window
	windowFullNoted bool       // WindowFull was noted
}

// reset begins a new session, in which no packets are in flight.
func (r *recovery) reset() {
	r.flight.reset(r.cfg.firstPacket)
	r.window.reset()
	r.rtt.reset(&r.cfg.Timing)
	r.reordering = reordering{packetThreshold: minReordering}
	r.pacer, r.windowLimited, r.paced, r.windowFullNoted, r.peerWindow = pacer{}, false, false, false, shortWindow
	r.maxPayload = int32(r.cfg.MaxPayload)
	if r.cfg.Discover {
		r.maxPayload = min(r.maxPayload, basePayload)
	}
	if s := r.search; s != nil {
		*s = mtuSearch{probes: s.probes}
	}
	r.timeouts, r.bypassWindow, r.lastAckNow, r.suspect = 0, false, r.cfg.firstPacket-1, suspect{}
	r.adaptLimits()
}

// cwnd returns the maximum number of packets in flight. The congestion window does not limit it if shared memory
// carries the packets.
func (r *recovery) cwnd() int {
	if r.cfg.ShortHeaders {
		return r.maxInFlight
	}
	return min(r.window.packets, r.maxInFlight)
}

// exceedsWindow reports whether sending another payload bytes would exceed the limit on bytes in flight (E28).
func (r *recovery) exceedsWindow(payload int64) bool {
	return r.flight.bytes > 0 && payload > 0 && r.flight.bytes+payload > r.maxFlightBytes
}

// onRTTSample records the round-trip time measured for the transmission with the given order, which is 0 if unknown.
func (r *recovery) onRTTSample(trip time.Duration, order uint64) {
	least := r.rtt.minRTT
	r.rtt.addSample(trip, &r.cfg.Timing)
	if r.rtt.minRTT != least {
		r.adaptLimits()
	}
	if r.paced && r.window.slowStart() && r.window.hyStart.addSample(trip, order, r.flight.order+1) {
		r.window.exitSlowStart()
	}
}

// detectLoss declares a packet lost if it was overtaken by more packets, or by a longer time, than the reordering
// observed so far explains (E29).
func (r *recovery) detectLoss(now Instant) {
	f := &r.flight
	for pkt := f.oldest(); pkt != nil && f.isOvertaken(pkt); pkt = f.oldest() {
		byOrder := f.highestAcked-pkt.order >= uint64(r.reordering.packetThreshold)
		if !byOrder && f.newestSent-pkt.sentAt < r.reordering.timeThreshold(&r.rtt) && now < r.lossTime(pkt) {
			return
		}
		r.reordering.byTime = !byOrder
		f.markLost(pkt)
		r.window.onLost(pkt.order, f.order+1)
		r.suspect = suspect{}
		r.stats.Losses++
		r.note(LossDetected).Header = pkt.header
		if r.search != nil {
			r.onLongLost(now, pkt)
		}
	}
}

// suspect is the packet whose timeout was the first of several consecutive ones to expire. It is kept until it is known
// whether its first transmission was lost or merely late (E30). clock is the clock at that timeout, or 0 if there is no
// suspect.
type suspect struct {
	number, clock uint32
	order         uint64 // of the first transmission
	timeouts      int
}

// judgeSuspect decides whether the suspect, which has now been acknowledged, was lost or merely late. If the echoed
// clock precedes the timeout, the first transmission was received: the round-trip time has increased, and nothing was
// lost. Eifel (RFC 3522) uses the same method.
func (r *recovery) judgeSuspect(echo uint32, trip time.Duration) {
	s := r.suspect
	r.suspect = suspect{}
	if int32(echo-s.clock) >= 0 {
		r.window.onLost(s.order, r.flight.order+1)
		r.window.confirmReduction()
		if s.timeouts >= persistentTimeouts {
			r.window.collapse()
		}
		return
	}
	// The measurements before the increase are no longer valid (RFC 4015).
	r.rtt.reset(&r.cfg.Timing)
	r.onRTTSample(trip, 0)
	r.note(Spurious)
}

// retransmitTime returns the time at which the timeout of p, the oldest packet in flight, expires. At that time, p is
// retransmitted or the peer is declared unreachable.
func (r *recovery) retransmitTime(p *packet) Instant {
	at := max(p.sentAt, r.timerStart) + r.rtt.rto
	after := r.cfg.Timing.UnreachableAfter
	if end := r.lastAckAt + after; after > 0 && r.timeouts >= minStalls && end > r.timerStart {
		at = min(at, end) // the peer had some time to answer the last retransmission
	}
	return at
}

// isUnreachable reports whether the peer must be declared unreachable, because it has acknowledged nothing for
// UnreachableAfter (E31).
func (r *recovery) isUnreachable(now Instant) bool {
	after := r.cfg.Timing.UnreachableAfter
	return after > 0 && r.timeouts >= minStalls && now-r.lastAckAt >= after
}

// onTimeout marks a single packet for retransmission: the oldest packet in flight after the first timeout, and the
// first unacknowledged packet after further ones (E29, E30).
func (r *recovery) onTimeout(now Instant, rng *random) {
	f := &r.flight
	pkt := f.oldest()
	if first := f.packetAt(f.base); r.timeouts > 0 && first.state == packetSent {
		pkt = first // every packet from the peer reports its receipt, not only ACKs
	}
	if r.suspect.clock == 0 {
		r.suspect = suspect{number: pkt.header.Number, order: pkt.order, clock: clockAt(now)}
	}
	r.suspect.timeouts++
	r.window.confirmReduction()
	f.markLost(pkt)
	r.rtt.backOff(&r.cfg.Timing, rng)
	r.timerStart, r.bypassWindow = now, true
	r.timeouts++
	r.stats.Timeouts++
	r.note(TimedOut).Header = pkt.header
	if r.search != nil {
		r.onLongLost(now, pkt)
	}
}

// stampShorts assigns the send time now to all short messages that have no send time yet.
func (r *recovery) stampShorts(now Instant) {
	q := r.shorts
	if q == nil || q.unstamped == 0 {
		return
	}
	if q.unstamped = min(q.unstamped, q.count); q.unstamped == q.count && r.flight.outstanding() == 0 {
		r.onResume(now)
	}
	for i := q.count - q.unstamped; i < q.count; i++ {
		q.entry(i).sentAt = now
	}
	q.unstamped = 0
}

// nextNumber returns the number of the next packet to be sent.
func (r *recovery) nextNumber() uint32 { return r.flight.nextNumber + uint32(r.shorts.len()) }

// onShortsAcked handles an acknowledgement that covers the first n short messages, where n is at most the number of
// them. All packets sent before them are acknowledged, so flight is empty.
func (r *recovery) onShortsAcked(now Instant, n uint32) {
	for range n {
		r.shorts.pop()
	}
	r.shorts.unstamped = min(r.shorts.unstamped, r.shorts.count)
	f := &r.flight
	f.nextNumber += n
	f.base, f.minSentOnce = f.nextNumber, f.nextNumber
	r.lastAckAt, r.timerStart, r.timeouts = now, now, 0
}

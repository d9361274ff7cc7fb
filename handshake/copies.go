package handshake

import (
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// Packets have no number, so a copy of DATA that the network delivers after the next CLEAR_TO_SEND looks like the next
// message. Two facts help to distinguish them: no answer comes sooner than a round trip, and one CLEAR_TO_SEND causes
// one DATA. Equal content proves nothing, because a program may send the same message again. It is only reported, and
// never a reason to drop DATA.

const (
	// minSamples is the number of answers after which the shortest time is meaningful. The first answers are slower
	// than later ones.
	minSamples = 8
	// grace and maxGrace bound the wait for the real DATA or ACK if the first one came sooner than any before, but not
	// impossibly soon.
	grace    = time.Millisecond
	maxGrace = 10 * time.Millisecond
	// impossibleDivisor is the divisor of the shortest round-trip time that gives the time in which no real answer can
	// come, even if this host was busy when the first answers came and measured too long round-trip times.
	impossibleDivisor = 8
	// maxNeedlessHolds is the maximum number of messages that are held back needlessly, because they were received too
	// soon or equal a recent one. Once it is reached, no message is held back until the network has provably made a
	// copy.
	maxNeedlessHolds = 3
)

// roundTrip measures the shortest time in which the peer has answered, including transit. An answer's time is measured
// from the event that sent the question to the event that handled the answer. Delays at either end can only make it
// longer, so a real answer never appears to come too soon.
type roundTrip struct {
	shortest Instant
	samples  int
}

// addSample records the time that a real answer took. It ignores 0, which means that the answer was handled together
// with the event that sent the question.
func (r *roundTrip) addSample(d Instant) {
	if d <= 0 {
		return
	}
	if r.samples == 0 || d < r.shortest {
		r.shortest = d
	}
	r.samples = min(r.samples+1, minSamples)
}

// fingerprint identifies the content of a message: its call, its size, and the checksum of the payload in its first
// datagram.
type fingerprint struct {
	call      protocol.Call
	size, sum uint32
}

// recentMessages is the number of messages with which a new one is compared. At ten thousand messages per second they
// cover 25 ms.
const recentMessages = 256

// recent contains the fingerprints of the last messages received.
type recent struct {
	ring  *[recentMessages]uint64 // nil before the first message
	added int                     // number of messages added; ring contains the last of them
}

func (f fingerprint) word() uint64 {
	return uint64(f.size)<<32 ^ uint64(f.call)<<61 ^ uint64(f.sum)
}

func (r *recent) add(f fingerprint) {
	if r.ring == nil {
		r.ring = new([recentMessages]uint64)
	}
	r.ring[r.added%recentMessages] = f.word()
	r.added++
}

func (r *recent) contains(f fingerprint) bool {
	return r.added > 0 && slices.Contains(r.ring[:min(r.added, recentMessages)], f.word())
}

// detectsDuplicates reports whether the pair searches for duplicates. A stream has no duplicates, and a stand-in with
// the FPGA's quirks accepts them as an FPGA does.
func (p *Pair) detectsDuplicates() bool {
	return !p.cfg.Reliable && !p.cfg.Quirks.OneDeferredHeader
}

// firstTimeout returns the peer's first time-out, or our own if the peer's is unknown.
func firstTimeout(peer Instant, own Backoff) Instant {
	if peer == 0 {
		return own.First
	}
	return peer
}

// suspectAnswer returns a timer that runs while an answer received after d is held back, or an unset timer if the
// answer is not suspicious. An answer that merely came sooner than any before is held back for a round trip. An answer
// that cannot be real is held back until the peer would have retransmitted the real one after firstTimeout, unless
// maxNeedlessHolds is reached. An answer is held back instead of dropped, because the peer may have no retransmission
// left.
func (p *Pair) suspectAnswer(trip *roundTrip, now, d, timeOut Instant) timer {
	switch {
	case trip.samples < minSamples || d >= trip.shortest:
		return timer{}
	case d < trip.shortest/impossibleDivisor && p.needlessHolds < maxNeedlessHolds:
		p.needlessHolds++ // reset when the network has made a copy
		return timerAfter(now, 2*timeOut+crossingWindow)
	}
	return timerAfter(now, min(trip.shortest-d, maxGrace)+grace)
}

// suspectData returns a timer for message f, whose first datagram has just been received. If the message is complete
// before the timer expires, it is held back until then. The timer is unset if f is not suspicious.
func (p *Pair) suspectData(now Instant, f fingerprint) timer {
	if !p.detectsDuplicates() {
		return timer{}
	}
	again := firstTimeout(p.cfg.Peer.AckRetransmit, p.cfg.Timing.Ack)
	t := p.suspectAnswer(&p.dataRTT, now, now-p.recv.phases.Clear, again)
	if !t.armed && p.needlessHolds < maxNeedlessHolds && p.dataRTT.samples == minSamples && p.recent.contains(f) {
		p.needlessHolds++
		t = timerAfter(now, min(p.dataRTT.shortest, maxGrace)+grace)
	}
	return t
}

// onSecondData handles DATA that comes although the last CLEAR_TO_SEND was answered and the peer has not asked to send
// since. One of the two DATA was a copy.
func (p *Pair) onSecondData(now Instant, f fingerprint, header protocol.Header, acts []Action) []Action {
	message := &p.lastReceived
	if !message.answersClear || !p.detectsDuplicates() {
		return acts
	}
	old := p.recent.contains(f)
	if old && !message.equalsRecent {
		return acts // a copy of an older message, which was not accepted
	}
	message.answersClear, message.answerTime = false, 0
	p.needlessHolds = 0
	event := SecondData
	if message.equalsRecent && !old && now-message.ackedAt < realDataWindow {
		event = DeliveredDuplicate
	}
	return append(acts, Action{Kind: Note, Event: event, Header: header})
}

// onExcessPayload handles payload without a header that follows a complete fragmented message. The network has
// duplicated one of the message's datagrams.
func (p *Pair) onExcessPayload(now Instant, acts []Action) []Action {
	l := &p.lastReceived
	if !l.answersClear || !l.fragmented || now-l.ackedAt > p.cfg.Timing.FragmentGap || !p.detectsDuplicates() {
		return acts
	}
	l.answersClear, l.answerTime = false, 0
	return append(acts, Action{Kind: Note, Event: SecondData})
}

// checkAck handles the ACK for which a send is waiting. If the ACK comes too soon, it may be a copy of an earlier ACK,
// or the peer has received a copy of an earlier message. Such an ACK is held back, and dropped if the peer asks for
// DATA again.
func (p *Pair) checkAck(now Instant, header protocol.Header, acts []Action) []Action {
	send := &p.send
	d := now - send.phases.Clear // DATA was sent after that
	if p.detectsDuplicates() && !send.ackHeld {
		again := firstTimeout(p.cfg.Peer.RetransmitsClear, p.cfg.Timing.Data)
		if send.holdTimer = p.suspectAnswer(&p.ackRTT, now, d, again); send.holdTimer.armed {
			send.ackHeld, send.heldAckDelay = true, d
			return append(acts, Action{Kind: Note, ID: send.op.ID, Event: EarlyAck, Header: header})
		}
	}
	send.ackHeld = false // a second ACK counts
	return p.completeSend(now, acts)
}

// clearAfterDone handles a CLEAR_TO_SEND from a deployed peer for which no send is waiting. There are two explanations.
// The peer's time-out for DATA has expired, and it asks again for a message that was reported as done, because the ACK
// was a copy. Or the network has copied our SEND_REQUEST, and the peer's next receive answers the copy. The two cases
// cannot be distinguished, so clearAfterDone does not report an error.
func (p *Pair) clearAfterDone(now Instant, header protocol.Header, acts []Action) []Action {
	s := &p.send
	if s.state != Idle && (s.state != Held || s.requestsSent > 0) || !p.lastSent.valid || p.clearPending ||
		p.lastSent.earlyClear.armed ||
		!p.retransmitsOnClear() || header.Call != p.lastSent.call {
		return acts
	}
	p.lastSent.earlyClear = p.untilRetransmit(now)
	return append(acts, Action{Kind: Note, Event: ClearAfterDone, Header: header})
}

// realDataWindow is the time for which, after a copy was delivered in place of the real DATA, the real DATA may still
// come. It is a sender's first time-out.
const realDataWindow = 100 * time.Millisecond

package handshake

import (
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// Packets carry no number, so a copy of DATA that the network delivers after the next CLEAR_TO_SEND looks like the next
// message. Two facts help to distinguish them: no answer comes sooner than a round trip, and one CLEAR_TO_SEND causes
// one DATA. Equal content proves nothing, because a program may send the same message again. The Pair reports equal
// content, but never drops DATA for it.

const (
	// minSamples is the number of answers that must be measured before the shortest time is meaningful, because the
	// first answers are slower than later ones.
	minSamples = 8
	// grace and maxGrace limit how long a DATA or ACK that came sooner than any before, but not impossibly soon, is
	// held back in case the real one follows.
	grace    = time.Millisecond
	maxGrace = 10 * time.Millisecond
	// impossibleDivisor divides the shortest round-trip time measured so far. An answer that comes sooner than the
	// quotient cannot be real, even if this host was busy during the first measurements and measured times that are too
	// long.
	impossibleDivisor = 8
	// maxNeedlessHolds limits how many messages are held back needlessly, because they came too soon or equal a recent
	// message. At this number, the Pair holds no message back until the network has provably made a copy.
	maxNeedlessHolds = 3
)

// roundTrip measures the shortest time in which the peer has answered, including transit. The time of an answer runs
// from the event that sent the question to the event that handled the answer. Delays at either end can only make it
// longer, so a real answer never appears to come too soon.
type roundTrip struct {
	shortest Instant
	samples  int
}

// addSample records the time that a real answer took. It ignores a time of 0, which means that one event sent the
// question and handled the answer.
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

// recentMessages is the number of earlier messages with which each new message is compared. At ten thousand messages
// per second, they cover 25 ms.
const recentMessages = 256

// recent holds the fingerprints of the messages received most recently.
type recent struct {
	ring  *[recentMessages]uint64 // nil before the first message
	added int                     // number of messages ever added
}

// word packs the fingerprint into one word. It is unique for messages of less than 2²⁹ words.
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

// detectsDuplicates reports whether the Pair detects duplicates. A stream has no duplicates, and a stand-in with the
// FPGA's quirks accepts them as an FPGA does.
func (p *Pair) detectsDuplicates() bool {
	return !p.cfg.Reliable && !p.cfg.Quirks.OneDeferredHeader
}

// firstTimeout returns the time after which the peer first retransmits. If it is unknown, our own first timeout is
// returned.
func firstTimeout(peer Instant, own Backoff) Instant {
	if peer == 0 {
		return own.First
	}
	return peer
}

// suspectAnswer returns a timer that runs while the Pair holds back an answer that came after d. The timer is unset if
// the answer is not suspicious. An answer that merely came sooner than any before is held back for about a round trip.
// An answer that came impossibly soon is held back until the peer, after timeOut, would have retransmitted the real
// one, unless maxNeedlessHolds is reached. The answer is not dropped, because the peer may have no retransmission left.
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

// suspectData returns a timer for message f, whose first datagram was just received. A message that is complete before
// the timer expires is held back until then. The timer is unset if f is not suspicious.
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

// onSecondData handles DATA for which there is no explanation: the last CLEAR_TO_SEND was already answered, and the
// peer has sent no SEND_REQUEST since. One of the two DATA messages was therefore a copy.
func (p *Pair) onSecondData(now Instant, f fingerprint, header protocol.Header, acts []Action) []Action {
	message := &p.lastReceived
	if !message.answersClear || !p.detectsDuplicates() {
		return acts
	}
	old := p.recent.contains(f)
	if old && !message.equalsRecent {
		return acts // a copy of an older message, which the Pair did not accept
	}
	message.answersClear, message.answerTime = false, 0
	p.needlessHolds = 0
	event := SecondData
	if message.equalsRecent && !old && now-message.ackedAt < realDataWindow {
		event = DeliveredDuplicate
	}
	return append(acts, Action{Kind: Note, Event: event, Header: header})
}

// onExcessPayload handles payload without a header after a complete fragmented message: the network has duplicated one
// of the message's datagrams.
func (p *Pair) onExcessPayload(now Instant, acts []Action) []Action {
	l := &p.lastReceived
	if !l.answersClear || !l.fragmented || now-l.ackedAt > p.cfg.Timing.FragmentGap || !p.detectsDuplicates() {
		return acts
	}
	l.answersClear, l.answerTime = false, 0
	return append(acts, Action{Kind: Note, Event: SecondData})
}

// checkAck handles the ACK that a send is waiting for. An ACK that comes too soon may be a copy of an earlier ACK, or
// acknowledge a copy of an earlier message. checkAck holds it back, and drops it if the peer asks for DATA again.
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

// clearAfterDone handles a CLEAR_TO_SEND from a deployed peer for which no send is waiting. Either the ACK of our last
// message was a copy, and the peer asks again for that message after its timeout for DATA; or the network has copied
// our SEND_REQUEST, and the peer's next receive answers the copy. The two cases look alike, so clearAfterDone only
// notes them and reports no error.
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

// realDataWindow is the time within which the real DATA may still arrive after a copy of earlier DATA was delivered in
// its place. It equals a sender's first timeout.
const realDataWindow = 100 * time.Millisecond

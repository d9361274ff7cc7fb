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
	// provenAnswers is the number of answers after which the shortest time is meaningful. The first answers are slower
	// than later ones.
	provenAnswers = 8
	// grace and maxGrace bound the wait for the real DATA or ACK if the first one came sooner than any before, but not
	// impossibly soon.
	grace    = time.Millisecond
	maxGrace = 10 * time.Millisecond
	// impossible is the divisor of the shortest round-trip time that gives the time in which no real answer can come,
	// even if this host was busy when the first answers came and measured too long round-trip times.
	impossible = 8
	// mostVainHolds is the maximum number of messages that are held back needlessly, because they came too soon or equal a
	// recent one. After that many, no message is held back until the network has provably made a copy.
	mostVainHolds = 3
)

// roundTrip measures the shortest time in which the peer has answered, including transit. An answer's time is measured
// from the event that sent the question to the event that handled the answer. Delays at either end can only make it
// longer, so a real answer never appears to come too soon.
type roundTrip struct {
	shortest Instant
	answers  int
}

// learn records the time that a real answer took. It ignores 0, which means that the answer was handled together with
// the event that sent the question.
func (r *roundTrip) learn(d Instant) {
	if d <= 0 {
		return
	}
	if r.answers == 0 || d < r.shortest {
		r.shortest = d
	}
	r.answers = min(r.answers+1, provenAnswers)
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
	ring *[recentMessages]uint64 // nil before the first message
	n    int                     // number of messages added; ring contains the last of them
}

func (f fingerprint) word() uint64 {
	return uint64(f.size)<<32 ^ uint64(f.call)<<61 ^ uint64(f.sum)
}

func (r *recent) add(f fingerprint) {
	if r.ring == nil {
		r.ring = new([recentMessages]uint64)
	}
	r.ring[r.n%recentMessages] = f.word()
	r.n++
}

func (r *recent) has(f fingerprint) bool {
	return r.n > 0 && slices.Contains(r.ring[:min(r.n, recentMessages)], f.word())
}

// distrustsCopies reports whether the pair searches for duplicates. A stream has no duplicates, and a stand-in with the
// FPGA's quirks accepts them as an FPGA does.
func (p *Pair) distrustsCopies() bool {
	return !p.cfg.Reliable && !p.cfg.Quirks.OneDeferredHeader
}

// timeOut returns the peer's first time-out, or our own if the peer's is unknown.
func timeOut(peer Instant, own Backoff) Instant {
	if peer == 0 {
		return own.First
	}
	return peer
}

// suspect returns a timer that runs while an answer that came after d is held back, or an unset timer if the answer is
// not suspicious. An answer that merely came sooner than any before is held back for a round trip. An answer that
// cannot be real is held back until the peer would have retransmitted the real one after timeOut, unless mostVainHolds
// is reached. An answer is held back instead of dropped, because the peer may have no retransmission left.
func (p *Pair) suspect(r *roundTrip, now, d, timeOut Instant) timer {
	switch {
	case r.answers < provenAnswers || d >= r.shortest:
		return timer{}
	case d < r.shortest/impossible && p.vainHolds < mostVainHolds:
		p.vainHolds++ // reset when the network has made a copy
		return in(now, 2*timeOut+crossing)
	}
	return in(now, min(r.shortest-d, maxGrace)+grace)
}

// suspectData returns a timer for message f, whose first datagram has just been received. If the message is complete
// before the timer expires, it is held back until then. The timer is unset if f is not suspicious.
func (p *Pair) suspectData(now Instant, f fingerprint) timer {
	if !p.distrustsCopies() {
		return timer{}
	}
	again := timeOut(p.cfg.Peer.AckRetransmit, p.cfg.Timing.Ack)
	t := p.suspect(&p.answer, now, now-p.recv.phases.Clear, again)
	if !t.on && p.vainHolds < mostVainHolds && p.answer.answers == provenAnswers && p.recent.has(f) {
		p.vainHolds++
		t = in(now, min(p.answer.shortest, maxGrace)+grace)
	}
	return t
}

// secondData handles DATA that comes although the last CLEAR_TO_SEND was answered and the peer has not asked to send
// since. One of the two DATA was a copy.
func (p *Pair) secondData(now Instant, f fingerprint, h protocol.Header, acts []Action) []Action {
	l := &p.last
	if !l.latest || !p.distrustsCopies() {
		return acts
	}
	old := p.recent.has(f)
	if old && !l.twin {
		return acts // a copy of an older message, which was not accepted
	}
	l.latest, l.answered = false, 0
	p.vainHolds = 0
	event := SecondData
	if l.twin && !old && now-l.acked < unmasked {
		event = DeliveredDuplicate
	}
	return append(acts, Action{Kind: Note, Event: event, Header: h})
}

// payloadTooMuch handles payload without a header that follows a complete fragmented message. The network has
// duplicated one of the message's datagrams.
func (p *Pair) payloadTooMuch(now Instant, acts []Action) []Action {
	l := &p.last
	if !l.latest || !l.fragmented || now-l.acked > p.cfg.Timing.FragmentGap || !p.distrustsCopies() {
		return acts
	}
	l.latest, l.answered = false, 0
	return append(acts, Action{Kind: Note, Event: SecondData})
}

// ackCame handles the ACK for which a send is waiting. If the ACK comes too soon, it may be a copy of an earlier ACK,
// or the peer has received a copy of an earlier message. Such an ACK is held back, and dropped if the peer asks for
// DATA again.
func (p *Pair) ackCame(now Instant, h protocol.Header, acts []Action) []Action {
	s := &p.send
	d := now - s.phases.Clear // DATA was sent after that
	if p.distrustsCopies() && !s.ackHeld {
		again := timeOut(p.cfg.Peer.RetransmitsClear, p.cfg.Timing.Data)
		if s.doubt = p.suspect(&p.ack, now, d, again); s.doubt.on {
			s.ackHeld, s.heldAnswer = true, d
			return append(acts, Action{Kind: Note, ID: s.op.ID, Event: EarlyAck, Header: h})
		}
	}
	s.ackHeld = false // a second ACK counts
	return p.acked(now, acts)
}

// clearAfterDone handles a CLEAR_TO_SEND from a deployed peer for which no send is waiting. There are two explanations.
// The peer's time-out for DATA has expired, and it asks again for a message that was reported as done, because the ACK
// was a copy. Or the network has copied our SEND_REQUEST, and the peer's next receive answers the copy. The two cases
// cannot be distinguished, so clearAfterDone does not report an error.
func (p *Pair) clearAfterDone(now Instant, h protocol.Header, acts []Action) []Action {
	s := &p.send
	if s.state != Idle && (s.state != Held || s.requested > 0) || !p.done.valid || p.clearPending || p.done.early.on ||
		!p.retransmitsOnClear() || h.Call != p.done.call {
		return acts
	}
	p.done.early = p.nextClear(now)
	return append(acts, Action{Kind: Note, Event: ClearAfterDone, Header: h})
}

// unmasked is the time for which, after a copy was delivered in place of the real DATA, the real DATA may still come.
// It is a sender's first time-out.
const unmasked = 100 * time.Millisecond

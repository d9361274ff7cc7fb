package handshake

import (
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Pair is the state between a local rank and one peer. It is not safe for
// concurrent use. Every event appends its actions to the slice it is given and
// returns it, so that a caller that reuses the slice allocates nothing.
type Pair struct {
	cfg  Config
	send sending
	recv receiving

	// deferred is the last SEND_REQUEST that no receive has answered; with the
	// OneDeferredHeader quirk, the last unexpected header of any type.
	deferred     deferredHeader
	unfit        bool // the deferred SEND_REQUEST did not match the posted receive
	stale        deferredHeader
	unanswered   deferredHeader // the peer's CLEAR_TO_SEND that no DATA has answered
	clearPending bool           // the peer may still answer a SEND_REQUEST of ours: of a send that ended without, or one too many
	numbers      numbers
	last         finished
	lossy        bool // packets behind SEND_REQUEST had to be retransmitted
	dead         deadEnd
	drain        int64 // payload bytes of a retransmitted message still to be swallowed
	drainEnd     Instant
	received     received
	recent       recent    // messages
	vainHolds    int       // messages held back without effect, since the last proof of a copy
	answer       roundTrip // of CLEAR_TO_SEND by DATA
	ack          roundTrip // of DATA in one datagram by ACK
	done         doneSend
	next         *renewal // nil if both directions go by cfg
	requestedAt  Instant  // when our last SEND_REQUEST was sent
	// earlier is what is left of processes that had this rank before, or nil; resumes: the deferred SEND_REQUEST stands
	// for a message that one of them has cleared.
	earlier *earlier
	resumes bool
}

// deferredHeader is a header kept for later.
type deferredHeader struct {
	valid  bool
	header protocol.Header
	at     Instant
	again  bool // a SEND_REQUEST that came again at the spacing of its sender: no duplicate
}

// finished is what is remembered of the last message received, to know a retransmission
// of it when one comes.
type finished struct {
	valid bool
	call  protocol.Call
	size  uint32
	sum   uint32
	acked Instant
	// early runs while DATA of it that arrives again may have been sent before our ACK
	// was there.
	early timer
	twin  bool // it resembled one of the messages before it
	// latest: it answered the last CLEAR_TO_SEND, answered after that; 0 if that is not known. fragmented: in several
	// datagrams.
	latest, fragmented bool
	answered           Instant
	// known: the peer is known to have our ACK. reacked counts its retransmissions that were acknowledged again.
	known   bool
	reacked int
}

// doneSend is what is remembered of the last message sent and acknowledged, to know a CLEAR_TO_SEND that asks for it
// again.
type doneSend struct {
	valid bool
	call  protocol.Call // of the peer's CLEAR_TO_SEND
	// early runs while a CLEAR_TO_SEND may be a copy of the last, or have crossed with DATA.
	early timer
}

// New returns an idle pair.
func New(cfg Config) *Pair { return &Pair{cfg: cfg} }

// Config returns what the pair was made with.
func (p *Pair) Config() Config { return p.cfg }

// Deadline returns the time by which Tick is to be called, and false if nothing
// waits for a time.
func (p *Pair) Deadline() (Instant, bool) {
	var restart timer
	if p.earlier != nil {
		restart = p.earlier.deadline
	}
	return earliest(p.send.rto, p.send.deadline, p.send.early, p.send.askedEarly, p.send.doubt, p.done.early,
		p.recv.rto, p.recv.deadline, p.recv.early, p.recv.doubt, p.last.early, restart)
}

// Tick acts on every time-out and deadline that has been reached. All that arrived before
// now must have been given to the pair: what a packet proves by the time of its arrival
// is decided by whether a timer had expired when it came, not by the time at which it was
// handled, which says nothing on a host that was stopped in between.
func (p *Pair) Tick(now Instant, acts []Action) []Action {
	p.send.early.expire(now)
	p.send.askedEarly.expire(now)
	p.done.early.expire(now)
	p.recv.early.expire(now)
	p.last.early.expire(now)
	if p.earlier != nil {
		acts = p.tickEarlier(now, acts)
	}
	acts = p.tickSend(now, acts)
	return p.tickRecv(now, acts)
}

// Reconnected informs a pair on a Reliable transport that whatever was under way
// on the connection is lost.
func (p *Pair) Reconnected(now Instant, acts []Action) []Action {
	if !p.cfg.Reliable {
		return acts
	}
	switch p.send.state {
	case Held:
		if p.send.requested > 0 && !p.send.gone { // a SEND_REQUEST that the peer may not have deferred
			acts = p.transmitRequest(now, acts)
		}
	case WaitClear:
		if !p.send.gone {
			acts = p.retransmitRequest(now, acts)
		}
	case WaitAck:
		acts = p.retransmitData(acts)
	}
	switch p.recv.state {
	case Receiving:
		acts = p.startOver(now, acts)
		fallthrough
	case WaitData:
		acts = p.clear(now, acts, true)
	}
	p.drain = 0
	return acts
}

// Datagram takes a UDP datagram from the peer's address.
func (p *Pair) Datagram(now Instant, b []byte, acts []Action) []Action {
	if p.earlier != nil && p.Offer(now, b) && p.recv.state == WaitRequest {
		acts = p.answerDeferred(now, acts)
	}
	h, defect := p.cfg.Profile.Parse(b)
	fits := defect.OK() && p.misdirected(h) == ReasonNone
	if p.recv.state == Receiving {
		left := p.recv.left()
		switch {
		case fits && len(b) == protocol.HeaderLen && left != protocol.HeaderLen:
			// The datagram expected here is longer or shorter, so
			// this is a packet.
		case fits && h.Type == protocol.Data && (p.recv.doubt.on || p.isRetransmission(h, b[protocol.HeaderLen:])):
		default:
			return p.Payload(now, b, acts)
		}
	} else if p.drain > 0 && now < p.drainEnd {
		switch {
		case fits && len(b) == protocol.HeaderLen && p.drain != protocol.HeaderLen:
		case fits && h.Type == protocol.Data && h.Size == p.last.size && checksum(b[protocol.HeaderLen:]) == p.last.sum:
		default:
			p.received.data(1, len(b))
			p.drain -= int64(len(b))
			p.drainEnd = now + p.cfg.Timing.FragmentGap
			acts = append(acts, Action{Kind: Drop, Reason: ReasonDuplicate})
			return p.short(b, acts)
		}
	}
	if !defect.OK() {
		reason := Reason(defect.Kind)
		if !protocol.BeginsWithMark(b) && len(b) > 0 && len(b)%protocol.WordLen == 0 && p.expectsPayload() {
			reason = ReasonUnexpectedPayload
		}
		if reason == ReasonUnexpectedPayload || defect.Kind == protocol.DefectShort {
			acts = p.payloadTooMuch(now, acts)
		}
		acts = append(acts, Action{Kind: Drop, Reason: reason})
		return p.short(b, acts)
	}
	// Only DATA carries more than a header; ERROR may, by the protocol page.
	if h.Type != protocol.Data && h.Type != protocol.Error && len(b) != protocol.HeaderLen {
		return append(acts, Action{Kind: Drop, Reason: ReasonLength, Header: h})
	}
	return p.packet(now, h, b[protocol.HeaderLen:], false, acts)
}

// Header takes a header from a transport whose framing distinguishes headers from
// payload. Payload follows by itself.
func (p *Pair) Header(now Instant, b []byte, acts []Action) []Action {
	h, defect := p.cfg.Profile.Parse(b)
	if !defect.OK() {
		return append(acts, Action{Kind: Drop, Reason: Reason(defect.Kind)})
	}
	return p.packet(now, h, nil, true, acts)
}

// expectsPayload reports whether payload without a header is the rest of a message we know of
// rather than noise.
func (p *Pair) expectsPayload() bool {
	return p.recv.state == WaitData || p.last.valid
}

// misdirected checks the ranks of a header.
func (p *Pair) misdirected(h protocol.Header) Reason {
	if h.Src != p.cfg.Remote {
		return ReasonSourceRank
	}
	if h.Dst != p.cfg.Local && !p.cfg.Quirks.IgnoreDestination {
		return ReasonDestination
	}
	return ReasonNone
}

// packet takes a packet whose header is valid. payload is what follows the
// header in the same datagram; streamed says that it comes separately instead.
func (p *Pair) packet(now Instant, h protocol.Header, payload []byte, streamed bool, acts []Action) []Action {
	drop := func(r Reason) []Action {
		return append(acts, Action{Kind: Drop, Reason: r, Header: h})
	}
	if r := p.misdirected(h); r != ReasonNone {
		return drop(r)
	}
	p.received.packet(h.Type, protocol.HeaderLen+len(payload))
	p.heard()
	switch {
	case p.recv.state == Receiving:
		acts = p.wedge(h, errWedgeMidMessage, acts)
	case p.send.state == Idle && !p.recv.active() && h.Type != protocol.SendRequest && !p.answersCancelled(h):
		acts = p.wedge(h, errWedgeUnsolicited, acts)
	}
	if h.Type != protocol.ClearToSend {
		p.unanswered = deferredHeader{} // it is in something else by now
	}
	if h.Call == protocol.Barrier {
		if p.isRevocation(h) {
			return p.onRevocation(now, h, acts)
		}
		return drop(ReasonBarrier)
	}
	switch h.Type {
	case protocol.SendRequest, protocol.Data:
		if !h.Call.IsSend() {
			return drop(ReasonDirection)
		}
	case protocol.ClearToSend, protocol.Ack:
		if !h.Call.IsRecv() {
			return drop(ReasonDirection)
		}
	}
	switch h.Type {
	case protocol.SendRequest:
		acts = p.onRequest(now, h, acts)
	case protocol.ClearToSend:
		acts = p.onClear(now, h, acts)
	case protocol.Data:
		acts = p.onData(now, h, payload, streamed, acts)
	case protocol.Ack:
		acts = p.onAck(now, h, acts)
	default:
		acts = p.onError(now, h, acts)
	}
	return p.Release(now, acts)
}

// onError takes an ERROR packet. The protocol page does not say which operation
// it is about; the send that waits is the better guess, since the receiver is
// the side that can refuse.
func (p *Pair) onError(now Instant, h protocol.Header, acts []Action) []Action {
	switch {
	case p.send.state == WaitClear || p.send.state == WaitAck:
		return p.endSend(now, &RemoteError{Remote: p.cfg.Remote, State: p.send.state}, acts)
	case p.recv.state == WaitData || p.recv.state == Receiving:
		return p.endRecv(now, &RemoteError{Remote: p.cfg.Remote, State: p.recv.state}, acts)
	}
	return append(acts, Action{Kind: Drop, Reason: ReasonStale, Header: h})
}

// park keeps a header for later, as far as we keep such headers.
func (p *Pair) deferHeader(now Instant, h protocol.Header) {
	if h.Type == protocol.SendRequest || p.cfg.Quirks.OneDeferredHeader {
		p.deferred = deferredHeader{valid: true, header: h, at: now}
	}
}

// header builds a packet of ours.
func (p *Pair) header(t protocol.Type, call protocol.Call, size uint32, tag uint8) protocol.Header {
	return protocol.Header{Dst: p.cfg.Remote, Src: p.cfg.Local, Size: size, Call: call, Type: t, Tag: tag}
}

// Reset ends a dead end after the peer was restarted, and forgets whatever was deferred. A message in
// progress goes on, but the peer is not in a dead end if it fails.
func (p *Pair) Reset() {
	p.leaveDeadEnd()
	p.send.resetSince, p.recv.resetSince = p.send.state == WaitAck, p.recv.active()
	p.deferred = deferredHeader{}
	p.stale = deferredHeader{}
	p.unanswered = deferredHeader{}
	p.clearPending = false
	p.numbers.forget()
	p.last = finished{}
	p.done = doneSend{}
	p.drain = 0
	p.earlier, p.resumes = nil, false
	if s := &p.send; s.suspect {
		s.suspect, s.deadline = false, timer{}
	}
}

// timer is a point in time that may be unset.
type timer struct {
	on bool
	at Instant
}

// due reports whether the timer is set and reached.
func (t timer) due(now Instant) bool { return t.on && now >= t.at }

// expire turns the timer off if it is due.
func (t *timer) expire(now Instant) {
	if t.due(now) {
		*t = timer{}
	}
}

// earliest returns when the first of the timers is due, and false if none is on.
func earliest(timers ...timer) (Instant, bool) {
	at, ok := Instant(0), false
	for _, t := range timers {
		if t.on && (!ok || t.at < at) {
			at, ok = t.at, true
		}
	}
	return at, ok
}

// in returns a timer that is due after d, or never if d is 0.
func in(now, d Instant) timer {
	if d <= 0 {
		return timer{}
	}
	return timer{on: true, at: now + d}
}

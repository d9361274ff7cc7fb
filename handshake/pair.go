package handshake

import (
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Pair is the state machine between a local rank and one peer. It is not safe for concurrent use. Every event appends
// its actions to the given slice and returns the extended slice, so that a caller that reuses it avoids allocation.
type Pair struct {
	cfg  Config
	send sending
	recv receiving

	// deferred is the last SEND_REQUEST not yet answered by a receive; with the OneDeferredHeader quirk, the last
	// unexpected header of any type.
	deferred     deferredHeader
	unfit        bool // the deferred SEND_REQUEST does not match the posted receive
	stale        deferredHeader
	unanswered   deferredHeader // the peer's CLEAR_TO_SEND that was not answered by DATA yet
	clearPending bool           // the peer may still answer a SEND_REQUEST of a send that ended, or an extra one
	numbers      numbers
	last         finished
	lossy        bool // a packet after SEND_REQUEST had to be retransmitted
	dead         deadEnd
	drain        int64 // payload bytes of a dropped message that are still to be discarded
	drainEnd     Instant
	received     received
	recent       recent    // messages
	vainHolds    int       // messages held back needlessly since the network last made a copy
	answer       roundTrip // time from CLEAR_TO_SEND to DATA
	ack          roundTrip // time from DATA in one datagram to ACK
	done         doneSend
	next         *renewal // settings that do not apply in both directions yet, or nil
	requestedAt  Instant  // when our last SEND_REQUEST was sent
	// earlier is the state left by previous processes of this rank, or nil. resumes is set if the deferred SEND_REQUEST
	// stands for a message that one of them cleared.
	earlier *earlier
	resumes bool
}

// deferredHeader is a header kept for later use.
type deferredHeader struct {
	valid  bool
	header protocol.Header
	at     Instant
	again  bool // a SEND_REQUEST that its sender has retransmitted, so it is not a duplicate
}

// finished describes the last message received, so that its retransmissions are recognized.
type finished struct {
	valid bool
	call  protocol.Call
	size  uint32
	sum   uint32
	acked Instant
	// early runs while retransmitted DATA may have crossed with our ACK.
	early timer
	twin  bool // the message equals an earlier recent message
	// latest is set if the message answered the last CLEAR_TO_SEND. answered is the time that this took, or 0 if
	// unknown. fragmented is set if the message came in several datagrams.
	latest, fragmented bool
	answered           Instant
	// known is set if the peer is known to have our ACK. reacked is the number of retransmissions of the message that
	// were acknowledged again.
	known   bool
	reacked int
}

// doneSend describes the last message that was sent and acknowledged, so that a CLEAR_TO_SEND that asks for it again is
// recognized.
type doneSend struct {
	valid bool
	call  protocol.Call // of the peer's CLEAR_TO_SEND
	// early runs while a CLEAR_TO_SEND may be a copy of the last one, or may have crossed with DATA.
	early timer
}

// New returns an idle pair.
func New(cfg Config) *Pair { return &Pair{cfg: cfg} }

// Config returns the effective configuration.
func (p *Pair) Config() Config { return p.cfg }

// Deadline returns the time at which Tick is due, and false if no timer is set.
func (p *Pair) Deadline() (Instant, bool) {
	var restart timer
	if p.earlier != nil {
		restart = p.earlier.deadline
	}
	return earliest(p.send.rto, p.send.deadline, p.send.early, p.send.askedEarly, p.send.doubt, p.done.early,
		p.recv.rto, p.recv.deadline, p.recv.early, p.recv.doubt, p.last.early, restart)
}

// Tick handles all time-outs and deadlines up to now. The caller must have passed all packets received before now to
// the Pair. Whether a packet came early is decided by the timers that Tick has expired before, and not by the time at
// which the packet is handled, which proves nothing if the host was stopped in between.
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

// Reconnected informs a Pair on a Reliable transport that the transport has a new connection, and that all data in
// flight on the old one is lost.
func (p *Pair) Reconnected(now Instant, acts []Action) []Action {
	if !p.cfg.Reliable {
		return acts
	}
	switch p.send.state {
	case Held:
		if p.send.requested > 0 && !p.send.gone { // the peer may not have received the SEND_REQUEST
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

// Datagram handles a UDP datagram from the peer's address.
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
			// The datagram expected here has another length, so this is a packet.
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
	// Only DATA has a payload, but the protocol page allows one in ERROR.
	if h.Type != protocol.Data && h.Type != protocol.Error && len(b) != protocol.HeaderLen {
		return append(acts, Action{Kind: Drop, Reason: ReasonLength, Header: h})
	}
	return p.packet(now, h, b[protocol.HeaderLen:], false, acts)
}

// Header handles a header from a transport whose framing separates headers from payload. The caller passes the payload
// to Payload.
func (p *Pair) Header(now Instant, b []byte, acts []Action) []Action {
	h, defect := p.cfg.Profile.Parse(b)
	if !defect.OK() {
		return append(acts, Action{Kind: Drop, Reason: Reason(defect.Kind)})
	}
	return p.packet(now, h, nil, true, acts)
}

// expectsPayload reports whether payload without a header may belong to a known message.
func (p *Pair) expectsPayload() bool {
	return p.recv.state == WaitData || p.last.valid
}

// misdirected returns ReasonNone if the ranks in a header are correct, and otherwise the reason to drop the packet.
func (p *Pair) misdirected(h protocol.Header) Reason {
	if h.Src != p.cfg.Remote {
		return ReasonSourceRank
	}
	if h.Dst != p.cfg.Local && !p.cfg.Quirks.IgnoreDestination {
		return ReasonDestination
	}
	return ReasonNone
}

// packet handles a packet with a valid header. payload is the rest of its datagram. If streamed is set, the payload
// follows separately instead.
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
		p.unanswered = deferredHeader{} // the peer is in another call by now
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

// onError handles an ERROR packet. The protocol page does not specify which operation it ends. onError ends the pending
// send if there is one, because the receiver is the side that can refuse a message.
func (p *Pair) onError(now Instant, h protocol.Header, acts []Action) []Action {
	switch {
	case p.send.state == WaitClear || p.send.state == WaitAck:
		return p.endSend(now, &RemoteError{Remote: p.cfg.Remote, State: p.send.state}, acts)
	case p.recv.state == WaitData || p.recv.state == Receiving:
		return p.endRecv(now, &RemoteError{Remote: p.cfg.Remote, State: p.recv.state}, acts)
	}
	return append(acts, Action{Kind: Drop, Reason: ReasonStale, Header: h})
}

// deferHeader keeps a header for later use if its type is one that the Pair keeps.
func (p *Pair) deferHeader(now Instant, h protocol.Header) {
	if h.Type == protocol.SendRequest || p.cfg.Quirks.OneDeferredHeader {
		p.deferred = deferredHeader{valid: true, header: h, at: now}
	}
}

// header returns the header of a packet from us to the peer.
func (p *Pair) header(t protocol.Type, call protocol.Call, size uint32, tag uint8) protocol.Header {
	return protocol.Header{Dst: p.cfg.Remote, Src: p.cfg.Local, Size: size, Call: call, Type: t, Tag: tag}
}

// Reset informs the Pair that the peer was restarted. It ends a dead end, and discards all deferred packets. A message
// in progress continues, but if it fails, the peer is not in a dead end.
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

// due reports whether the timer is set and has expired.
func (t timer) due(now Instant) bool { return t.on && now >= t.at }

// expire clears the timer if it is due.
func (t *timer) expire(now Instant) {
	if t.due(now) {
		*t = timer{}
	}
}

// earliest returns the time of the timer that expires first, and false if none is set.
func earliest(timers ...timer) (Instant, bool) {
	at, ok := Instant(0), false
	for _, t := range timers {
		if t.on && (!ok || t.at < at) {
			at, ok = t.at, true
		}
	}
	return at, ok
}

// in returns a timer that expires after d, or an unset one if d is 0.
func in(now, d Instant) timer {
	if d <= 0 {
		return timer{}
	}
	return timer{on: true, at: now + d}
}

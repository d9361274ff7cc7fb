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

	// deferred holds the last SEND_REQUEST that no receive has answered yet. With the OneDeferredHeader quirk, it holds
	// the last unexpected header of any type.
	deferred         deferredHeader
	deferredMismatch bool // the deferred SEND_REQUEST does not match the posted receive
	// staleClear is a CLEAR_TO_SEND without a matching send in progress, kept for the pair's next send (P7, P16).
	staleClear      deferredHeader
	unansweredClear deferredHeader // the peer's CLEAR_TO_SEND that DATA has not answered yet
	clearPending    bool           // the peer may still answer a SEND_REQUEST of a send that ended, or an extra one
	numbers         requestNumbers
	lastReceived    receivedMessage
	lossy           bool // a packet after SEND_REQUEST had to be retransmitted
	deadEnd         deadEnd
	// Until discardUntil, the next discardBytes bytes of payload belong to a message that is dropped.
	discardBytes  int64
	discardUntil  Instant
	counts        packetCounts
	recent        recent    // messages
	needlessHolds int       // messages held back needlessly since the network last made a copy
	dataRTT       roundTrip // time from CLEAR_TO_SEND to DATA
	ackRTT        roundTrip // time from DATA of one datagram to ACK
	lastSent      sentMessage
	newSettings   *newSettings // settings that do not apply in both directions yet, or nil
	requestedAt   Instant      // when our last SEND_REQUEST was sent
	// inherited is the state that previous processes of this rank left behind, or nil. The flag resuming is set if the
	// deferred SEND_REQUEST stands for a message that a previous process has already cleared.
	inherited *inherited
	resuming  bool
}

// deferredHeader is a header kept for later use.
type deferredHeader struct {
	valid         bool
	header        protocol.Header
	receivedAt    Instant
	retransmitted bool // its sender has retransmitted this SEND_REQUEST, so it is not a duplicate
}

// receivedMessage describes the last message received, so that retransmissions of it are recognized.
type receivedMessage struct {
	valid   bool
	call    protocol.Call
	size    uint32
	sum     uint32
	ackedAt Instant
	// earlyData is a timer. Until it expires, retransmitted DATA may have crossed with our ACK.
	earlyData    timer
	equalsRecent bool // the message equals an earlier recent message
	// answersClear is set if the message answered the last CLEAR_TO_SEND, and answerTime is the time from that
	// CLEAR_TO_SEND to the message, or 0 if unknown. fragmented is set if the message came in several datagrams.
	answersClear, fragmented bool
	answerTime               Instant
	// ackConfirmed is set if the peer is known to have received our ACK. reacksSent is the number of ACKs sent for
	// retransmissions of the message.
	ackConfirmed bool
	reacksSent   int
}

// sentMessage describes the last message that was sent and acknowledged, so that a CLEAR_TO_SEND that asks for it again
// is recognized.
type sentMessage struct {
	valid bool
	call  protocol.Call // of the peer's CLEAR_TO_SEND
	// earlyClear is a timer. Until it expires, a CLEAR_TO_SEND may be a copy of the last one or may have crossed with
	// DATA.
	earlyClear timer
}

// New returns an idle pair.
func New(cfg Config) *Pair { return &Pair{cfg: cfg} }

// Config returns the effective configuration.
func (p *Pair) Config() Config { return p.cfg }

// Deadline returns the time at which Tick must be called, and false if no timer is set.
func (p *Pair) Deadline() (Instant, bool) {
	var restart timer
	if p.inherited != nil {
		restart = p.inherited.deadline
	}
	return earliest(p.send.rto, p.send.deadline, p.send.earlyClear, p.send.earlyRequest, p.send.holdTimer,
		p.lastSent.earlyClear,
		p.recv.rto, p.recv.deadline, p.recv.earlyRequest, p.recv.holdTimer, p.lastReceived.earlyData, restart)
}

// Tick handles all timeouts and deadlines up to now. The caller must have passed all packets received before now to the
// Pair. Tick also ends the times during which a packet counts as early. The time at which a packet is handled could not
// decide that, because the host may have been stopped in between.
func (p *Pair) Tick(now Instant, acts []Action) []Action {
	p.send.earlyClear.expire(now)
	p.send.earlyRequest.expire(now)
	p.lastSent.earlyClear.expire(now)
	p.recv.earlyRequest.expire(now)
	p.lastReceived.earlyData.expire(now)
	if p.inherited != nil {
		acts = p.tickInherited(now, acts)
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
		if p.send.requestsSent > 0 && !p.send.detached { // the peer may not have received the SEND_REQUEST
			acts = p.transmitRequest(now, acts)
		}
	case WaitClear:
		if !p.send.detached {
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
		acts = p.sendClear(now, acts, true)
	}
	p.discardBytes = 0
	return acts
}

// Datagram handles a UDP datagram from the peer's address.
func (p *Pair) Datagram(now Instant, b []byte, acts []Action) []Action {
	if p.inherited != nil && p.Offer(now, b) && p.recv.state == WaitRequest {
		acts = p.answerDeferred(now, acts)
	}
	header, defect := p.cfg.Profile.Parse(b)
	fits := defect.OK() && p.checkRanks(header) == ReasonNone
	if p.recv.state == Receiving {
		left := p.recv.remaining()
		switch {
		case fits && len(b) == protocol.HeaderLen && left != protocol.HeaderLen:
			// This datagram does not have the length that the next datagram of the message must have, so it is a packet
			// of its own.
		case fits && header.Type == protocol.Data &&
			(p.recv.holdTimer.armed || p.isRetransmission(header, b[protocol.HeaderLen:])):
		default:
			return p.Payload(now, b, acts)
		}
	} else if p.discardBytes > 0 && now < p.discardUntil {
		switch {
		case fits && len(b) == protocol.HeaderLen && p.discardBytes != protocol.HeaderLen:
		case fits && header.Type == protocol.Data && header.Size == p.lastReceived.size &&
			checksum(b[protocol.HeaderLen:]) == p.lastReceived.sum:
		default:
			p.counts.countPayload(1, len(b))
			p.discardBytes -= int64(len(b))
			p.discardUntil = now + p.cfg.Timing.FragmentGap
			acts = append(acts, Action{Kind: Drop, Reason: ReasonDuplicate})
			return p.noteShort(b, acts)
		}
	}
	if !defect.OK() {
		reason := Reason(defect.Kind)
		if !protocol.BeginsWithMark(b) && len(b) > 0 && len(b)%protocol.WordLen == 0 && p.expectsPayload() {
			reason = ReasonUnexpectedPayload
		}
		if reason == ReasonUnexpectedPayload || defect.Kind == protocol.DefectShort {
			acts = p.onExcessPayload(now, acts)
		}
		acts = append(acts, Action{Kind: Drop, Reason: reason})
		return p.noteShort(b, acts)
	}
	// Only DATA has a payload, but the protocol page allows one in ERROR.
	if header.Type != protocol.Data && header.Type != protocol.Error && len(b) != protocol.HeaderLen {
		return append(acts, Action{Kind: Drop, Reason: ReasonLength, Header: header})
	}
	return p.handlePacket(now, header, b[protocol.HeaderLen:], false, acts)
}

// Header handles a header from a transport that frames headers and payload separately. The caller passes the payload to
// Payload.
func (p *Pair) Header(now Instant, b []byte, acts []Action) []Action {
	h, defect := p.cfg.Profile.Parse(b)
	if !defect.OK() {
		return append(acts, Action{Kind: Drop, Reason: Reason(defect.Kind)})
	}
	return p.handlePacket(now, h, nil, true, acts)
}

// expectsPayload reports whether payload without a header may belong to the message being received or to the last one.
func (p *Pair) expectsPayload() bool {
	return p.recv.state == WaitData || p.lastReceived.valid
}

// checkRanks returns ReasonNone if the ranks in a header are correct, and otherwise the reason to drop the packet.
func (p *Pair) checkRanks(h protocol.Header) Reason {
	if h.Src != p.cfg.Remote {
		return ReasonSourceRank
	}
	if h.Dst != p.cfg.Local && !p.cfg.Quirks.IgnoreDestination {
		return ReasonDestination
	}
	return ReasonNone
}

// handlePacket handles a packet whose header is valid. The parameter payload is the rest of its datagram. If streamed
// is set, payload is nil, because the payload follows separately.
func (p *Pair) handlePacket(now Instant, header protocol.Header, payload []byte, streamed bool,
	acts []Action) []Action {
	drop := func(r Reason) []Action {
		return append(acts, Action{Kind: Drop, Reason: r, Header: header})
	}
	if r := p.checkRanks(header); r != ReasonNone {
		return drop(r)
	}
	p.counts.countPacket(header.Type, protocol.HeaderLen+len(payload))
	p.onAnyPacket()
	switch {
	case p.recv.state == Receiving:
		acts = p.noteWedge(header, errWedgeMidMessage, acts)
	case p.send.state == Idle && !p.recv.isActive() && header.Type != protocol.SendRequest && !p.answersCancelled(header):
		acts = p.noteWedge(header, errWedgeUnsolicited, acts)
	}
	if header.Type != protocol.ClearToSend {
		p.unansweredClear = deferredHeader{} // the peer is in another call by now
	}
	if header.Call == protocol.Barrier {
		if p.isRevocation(header) {
			return p.onRevocation(now, header, acts)
		}
		return drop(ReasonBarrier)
	}
	switch header.Type {
	case protocol.SendRequest, protocol.Data:
		if !header.Call.IsSend() {
			return drop(ReasonDirection)
		}
	case protocol.ClearToSend, protocol.Ack:
		if !header.Call.IsRecv() {
			return drop(ReasonDirection)
		}
	}
	switch header.Type {
	case protocol.SendRequest:
		acts = p.onRequest(now, header, acts)
	case protocol.ClearToSend:
		acts = p.onClear(now, header, acts)
	case protocol.Data:
		acts = p.onData(now, header, payload, streamed, acts)
	case protocol.Ack:
		acts = p.onAck(now, header, acts)
	default:
		acts = p.onError(now, header, acts)
	}
	return p.Release(now, acts)
}

// onError handles an ERROR packet. The protocol page does not specify the operation that it ends. onError ends the
// current send, if any, because the receiver is the side that can refuse a message.
func (p *Pair) onError(now Instant, header protocol.Header, acts []Action) []Action {
	switch {
	case p.send.state == WaitClear || p.send.state == WaitAck:
		return p.endSend(now, &RemoteError{Remote: p.cfg.Remote, State: p.send.state}, acts)
	case p.recv.state == WaitData || p.recv.state == Receiving:
		return p.endRecv(now, &RemoteError{Remote: p.cfg.Remote, State: p.recv.state}, acts)
	}
	return append(acts, Action{Kind: Drop, Reason: ReasonStale, Header: header})
}

// deferHeader keeps the header h for later use, if the Pair defers headers of its type.
func (p *Pair) deferHeader(now Instant, h protocol.Header) {
	if h.Type == protocol.SendRequest || p.cfg.Quirks.OneDeferredHeader {
		p.deferred = deferredHeader{valid: true, header: h, receivedAt: now}
	}
}

// header returns the header of a packet from us to the peer.
func (p *Pair) header(t protocol.Type, call protocol.Call, size uint32, tag uint8) protocol.Header {
	return protocol.Header{Dst: p.cfg.Remote, Src: p.cfg.Local, Size: size, Call: call, Type: t, Tag: tag}
}

// LostAcks returns how many ACKs of the last message received the peer lacked, since it retransmitted the message after
// each of them, and the time of the last such retransmission.
func (p *Pair) LostAcks() (n int, last Instant) {
	return p.lastReceived.reacksSent, p.lastReceived.ackedAt
}

// Reset informs the Pair that the peer was restarted. It ends a dead end, and discards all deferred packets. A message
// in progress continues, but its failure does not lead to a dead end.
func (p *Pair) Reset() {
	p.exitDeadEnd()
	p.send.peerRestarted, p.recv.peerRestarted = p.send.state == WaitAck, p.recv.isActive()
	p.deferred = deferredHeader{}
	p.staleClear = deferredHeader{}
	p.unansweredClear = deferredHeader{}
	p.clearPending = false
	p.numbers.reset()
	p.lastReceived = receivedMessage{}
	p.lastSent = sentMessage{}
	p.discardBytes = 0
	p.inherited, p.resuming = nil, false
	if s := &p.send; s.peerAwaitsData {
		s.peerAwaitsData, s.deadline = false, timer{}
	}
}

// timer is the time at which something is due. It may be unset.
type timer struct {
	armed  bool
	expiry Instant
}

// isDue reports whether the timer is set and has expired.
func (t timer) isDue(now Instant) bool { return t.armed && now >= t.expiry }

// expire clears the timer if it is due.
func (t *timer) expire(now Instant) {
	if t.isDue(now) {
		*t = timer{}
	}
}

// earliest returns the time at which the first of the given timers expires, and false if none of them is set.
func earliest(timers ...timer) (Instant, bool) {
	at, ok := Instant(0), false
	for _, t := range timers {
		if t.armed && (!ok || t.expiry < at) {
			at, ok = t.expiry, true
		}
	}
	return at, ok
}

// timerAfter returns a timer that expires when d has passed. If d is 0, the timer is unset.
func timerAfter(now, d Instant) timer {
	if d <= 0 {
		return timer{}
	}
	return timer{armed: true, expiry: now + d}
}

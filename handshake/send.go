package handshake

import (
	"errors"
	"fmt"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// SendOp is a send operation.
type SendOp struct {
	ID       ID
	Words    uint32
	Datatype protocol.Datatype
	Tag      uint8
}

// sending is the state of the sending half of a Pair.
type sending struct {
	state      State
	op         SendOp
	stateSince Instant
	// rto retransmits SEND_REQUEST or DATA; it does not run while DATA is being sent. deadline ends the send, in most
	// cases with a *TimeoutError; retransmissions do not extend it.
	rto      timer
	deadline timer
	timeouts int // number of timeouts in this wait; with the CarryOver quirk, in the whole message
	phases   Phases

	requestsSent int     // number of our SEND_REQUESTs that this message's receive may answer
	requestedAt  Instant // when the last one was sent
	dataSent     bool    // DATA was sent at least once
	writing      bool    // DATA is being sent
	cleared      bool    // a CLEAR_TO_SEND was received
	// earlyClear is a timer. Until it expires, a further CLEAR_TO_SEND may be a duplicate of the last one or may have
	// crossed with DATA.
	earlyClear timer
	// peerRequested is set if the peer has sent SEND_REQUEST since DATA was sent. Until the timer earlyRequest expires,
	// a further SEND_REQUEST may be a copy of the first one.
	peerRequested bool
	earlyRequest  timer
	// ackHeld is set while the Pair holds back a received ACK until holdTimer expires, because the ACK may be a copy of
	// an earlier one. heldAckDelay is the time that the held ACK took to arrive.
	ackHeld      bool
	holdTimer    timer
	heldAckDelay Instant
	// ambiguousClear is set if the peer may have kept a second SEND_REQUEST for this message. Another CLEAR_TO_SEND may
	// then belong to the peer's next receive.
	ambiguousClear bool
	// peerRestarted is set if the peer was restarted, so that it does not wait for the rest of the message.
	peerRestarted bool
	// neverReceived is set if no packet was ever received from the peer, so that Timing.FirstDeadline determines the
	// deadline.
	neverReceived bool
	// peerAwaitsData is set if the peer may be waiting for DATA that an earlier process of this rank should have sent.
	// The peer may then never answer SEND_REQUEST.
	peerAwaitsData bool
	detached       bool // DetachSend was called, because the caller is gone
}

const (
	// crossingWindow is the time after DATA within which a CLEAR_TO_SEND may have crossed with the DATA. It is shorter
	// than the time after which a deployed node asks again.
	crossingWindow = deployedFirst / 2
	// promptWindow is the time within which a peer is assumed to answer a SEND_REQUEST if its receive is already
	// posted.
	promptWindow = 10 * time.Millisecond
)

// Send starts a message. The error is ErrBusy or a *DeadEndError, or wraps ErrEmpty or ErrTooLong.
func (p *Pair) Send(now Instant, op SendOp, acts []Action) ([]Action, error) {
	send := &p.send
	switch {
	case send.state != Idle:
		return acts, ErrBusy
	case op.Words == 0 && p.cfg.Peer.RefusesEmpty:
		return acts, fmt.Errorf("rank %d → rank %d: %w: it waits for payload forever; send at least one word",
			p.cfg.Local, p.cfg.Remote, ErrEmpty)
	case op.Words > p.cfg.MaxWords:
		return acts, fmt.Errorf("rank %d → rank %d: %d words: %w (%d)", p.cfg.Local, p.cfg.Remote, op.Words, ErrTooLong,
			p.cfg.MaxWords)
	case p.cfg.PeerWords > 0 && op.Words > p.cfg.PeerWords:
		return acts, fmt.Errorf("rank %d → rank %d: %d words: %w: the kernel of rank %[2]d takes %[5]d at most "+
			"(kernel_options.words)",
			p.cfg.Local, p.cfg.Remote, op.Words, ErrTooLong, p.cfg.PeerWords)
	case p.rejectsSend():
		return acts, p.deadEnd.err
	}
	*send = sending{state: Held, op: op, stateSince: now, phases: Phases{Start: now}}
	if p.recv.isActive() {
		if p.cfg.Peer.BlockingCalls {
			p.armSend(now, p.cfg.Timing.Clear)
		}
		return acts, nil
	}
	if p.mayBeInOurSend() {
		return acts, nil
	}
	return p.startSend(now, acts), nil
}

// startSend starts a message that is not held back: it sends SEND_REQUEST and begins to wait for CLEAR_TO_SEND.
func (p *Pair) startSend(now Instant, acts []Action) []Action {
	send := &p.send
	send.state, send.stateSince, send.timeouts = WaitClear, now, 0
	send.deadline = timerAfter(now, p.cfg.Timing.ClearDeadline)
	if t := &p.cfg.Timing; t.FirstDeadline > 0 && !p.counts.any() &&
		(t.ClearDeadline == 0 || t.FirstDeadline < t.ClearDeadline) {
		send.neverReceived, send.deadline = true, timerAfter(now, t.FirstDeadline)
	}
	if p.deadEnd.err != nil {
		p.deadEnd.trialStarted, send.deadline = true, timerAfter(now, p.trialTimeout())
	}
	if p.mayWaitForData() {
		send.peerAwaitsData, send.deadline = true, timerAfter(now, restartTimeout)
	}
	if send.requestsSent == 0 {
		send.phases.Request = now
	}
	p.armSend(now, p.cfg.Timing.Clear)
	if p.clearPending && p.cfg.Peer.KeepsRequests {
		// The peer has kept an earlier SEND_REQUEST, which its next receive answers. It would keep another one for the
		// receive after that.
		send.requestsSent++
	} else {
		acts = p.transmitRequest(now, acts)
	}
	if p.cfg.Quirks.OneDeferredHeader && p.deferred.valid && p.matchesClear(p.deferred.header) {
		return p.startData(now, acts)
	}
	return p.useStale(now, acts)
}

// useStale sends DATA if the peer has already cleared this send. The CLEAR_TO_SEND arrived earlier, and seemed to be a
// stale one.
func (p *Pair) useStale(now Instant, acts []Action) []Action {
	stale := p.staleClear
	p.staleClear = deferredHeader{}
	if !stale.valid || !p.matchesClear(stale.header) {
		return acts
	}
	acts = append(acts, Action{Kind: Note, ID: p.send.op.ID, Event: StaleClearUsed})
	return p.startData(now, acts)
}

// transmitRequest transmits SEND_REQUEST. The time is also stored in the Pair, where it outlives the send: a later
// process needs it to judge the peer's packets (P24).
func (p *Pair) transmitRequest(now Instant, acts []Action) []Action {
	s := &p.send
	s.requestsSent++
	s.requestedAt, p.requestedAt = now, now
	h := p.header(protocol.SendRequest, p.sendCall(), p.sendNumber(), s.op.Tag)
	return append(acts, Action{Kind: Transmit, ID: s.op.ID, Header: h})
}

func (p *Pair) dataHeader() protocol.Header {
	return p.header(protocol.Data, p.sendCall(), p.send.op.Words, p.send.op.Tag)
}

// sendCall returns the call in our SEND_REQUEST and DATA. Upstream's CPU library knows INT calls only.
func (p *Pair) sendCall() protocol.Call {
	if p.cfg.Peer.IntCallsOnly {
		return protocol.SendInt
	}
	return p.send.op.Datatype.SendCall()
}

// startData sends DATA for the first time.
func (p *Pair) startData(now Instant, acts []Action) []Action {
	p.dropInherited(now) // the peer is in the receive of this message
	send := &p.send
	send.state, send.stateSince = WaitAck, now
	if !p.cfg.Quirks.CarryOver {
		send.timeouts = 0
	}
	send.phases.Clear = now
	p.staleClear = deferredHeader{}
	send.peerRestarted = false
	p.exitDeadEnd() // the peer has asked for this message
	send.cleared, send.earlyClear = true, p.untilRetransmit(now)
	send.ambiguousClear = p.cfg.Peer.KeepsRequests && send.requestsSent > 1
	p.clearPending = send.ambiguousClear && now-send.requestedAt > promptWindow
	send.deadline = timer{} // set by DataSent
	return p.transmitData(acts)
}

// transmitData transmits DATA, for the first time or again. An ACK held back so far is forgotten, because it answered
// an earlier transmission. A stand-in also forgets a deferred header, as an FPGA does (trap 3).
func (p *Pair) transmitData(acts []Action) []Action {
	send := &p.send
	if p.cfg.Quirks.OneDeferredHeader {
		p.deferred = deferredHeader{}
	}
	send.rto, send.writing = timer{}, true
	send.ackHeld, send.holdTimer = false, timer{}
	p.unansweredClear = deferredHeader{}
	return append(acts, Action{Kind: TransmitData, ID: send.op.ID, Header: p.dataHeader(), Words: send.op.Words})
}

// DataSent informs the Pair that the caller has executed TransmitData. The wait for ACK begins now, however long the
// transmission took.
func (p *Pair) DataSent(now Instant) {
	send := &p.send
	if send.state != WaitAck {
		return
	}
	if !send.dataSent { // retransmissions do not extend the deadline
		send.deadline = timerAfter(now, boundDeadline(p.cfg.Timing.AckDeadline, send.detached))
	}
	send.dataSent, send.writing, send.phases.Data = true, false, now
	if !p.retransmitsOnClear() {
		p.armSend(now, p.cfg.Timing.Ack)
		return
	}
	send.earlyClear = timer{armed: true, expiry: max(send.earlyClear.expiry, now+crossingWindow)}
}

// retransmitsOnClear reports whether DATA is retransmitted only if the peer asks for it by CLEAR_TO_SEND.
func (p *Pair) retransmitsOnClear() bool {
	return p.cfg.Peer.RetransmitsClear > 0 && !p.cfg.Reliable &&
		!(p.cfg.OnPartial == RetransmitPartial && p.cfg.Peer.CorruptsOnRetransmit)
}

// provesLoss handles a CLEAR_TO_SEND that comes after DATA was sent. It reports whether the CLEAR_TO_SEND proves that
// the peer holds nothing of the message, because the peer received none of it or discarded it. A CLEAR_TO_SEND proves
// nothing in three cases: it follows the last one sooner than the peer retransmits, so that one of the two is late or a
// duplicate; the peer may have sent it before all of DATA arrived, so that the message may still be received; or it may
// belong to the peer's next receive.
func (p *Pair) provesLoss(now Instant) bool {
	s := &p.send
	early := s.earlyClear.armed
	s.earlyClear = p.untilRetransmit(now)
	return p.retransmitsOnClear() && !s.ambiguousClear && !early && !s.writing
}

// untilRetransmit returns a timer that expires when the peer may retransmit the CLEAR_TO_SEND or SEND_REQUEST just
// received. It expires a tenth sooner than the peer's timeout, to allow for clock differences and transit.
func (p *Pair) untilRetransmit(now Instant) timer {
	return timerAfter(now, p.cfg.Peer.RetransmitsClear*9/10)
}

// fragmented reports whether the message being sent needs several datagrams.
func (p *Pair) fragmented() bool { return p.fragments(p.send.op.Words) }

// fragments reports whether a message of the given number of words needs several datagrams.
func (p *Pair) fragments(words uint32) bool {
	return !p.cfg.Reliable && p.cfg.Shape.NumDatagrams(words) > 1
}

// armSend sets the retransmission timer for the next timeout of b. After the last one, or on a reliable transport, the
// send waits without a timer, limited only by its deadline.
func (p *Pair) armSend(now Instant, b Backoff) {
	p.send.rto = timer{}
	if p.cfg.Reliable {
		return
	}
	if d, ok := b.after(p.send.timeouts); ok {
		p.send.rto = timerAfter(now, d)
	}
}

func (p *Pair) retransmitRequest(now Instant, acts []Action) []Action {
	s := &p.send
	s.timeouts++
	s.phases.Retransmissions++
	p.armSend(now, p.cfg.Timing.Clear)
	acts = p.transmitRequest(now, acts)
	return append(acts, Action{Kind: Note, ID: s.op.ID, Event: Retransmitted, Header: acts[len(acts)-1].Header})
}

func (p *Pair) retransmitData(acts []Action) []Action {
	s := &p.send
	s.timeouts++
	s.phases.Retransmissions++
	p.lossy = true
	acts = p.transmitData(acts)
	return append(acts, Action{Kind: Note, ID: s.op.ID, Event: Retransmitted, Header: acts[len(acts)-1].Header})
}

// tickSend handles the timers of the sending half.
func (p *Pair) tickSend(now Instant, acts []Action) []Action {
	send := &p.send
	if send.ackHeld && (send.holdTimer.isDue(now) || send.deadline.isDue(now)) {
		return p.completeSend(now, acts) // nothing contradicts it
	}
	if send.deadline.isDue(now) {
		switch {
		case p.deadEnd.err != nil: // this send was a trial
			return p.endSend(now, p.deadEnd.err, acts)
		case send.peerAwaitsData && send.state == WaitClear:
			return p.endSend(now, p.restartError(MayWaitForData, now-send.stateSince), acts)
		case send.state == WaitAck && p.retransmitsOnClear() && p.fragmented():
			return p.onAckOverdue(now, acts)
		}
		w, _ := p.SendWait()
		err := &TimeoutError{Wait: w, Elapsed: now - send.stateSince, Unheard: send.neverReceived}
		err.Silent = send.state == WaitAck && !send.peerRequested && p.silenceProvesAck() &&
			err.Elapsed >= p.cfg.Peer.retransmitSpan()
		return p.endSend(now, err, acts)
	}
	if !send.rto.isDue(now) {
		return acts
	}
	switch send.state {
	case Held:
		return p.requestWhileHeld(now, acts)
	case WaitClear:
		return p.retransmitRequest(now, acts)
	}
	return p.retransmitData(acts)
}

// onAnyPacket records that a packet was received from the peer. From then on, the usual deadline applies to the wait
// for CLEAR_TO_SEND.
func (p *Pair) onAnyPacket() {
	s := &p.send
	if !s.neverReceived {
		return
	}
	if s.neverReceived = false; s.state == WaitClear {
		s.deadline = timerAfter(s.stateSince, p.cfg.Timing.ClearDeadline)
	}
}

// silenceProvesAck reports whether silence proves that the peer has received the message, because an FPGA that lacks
// DATA asks for it again. An FPGA asks three times, and for a fragmented message only until it has received the first
// datagram.
func (p *Pair) silenceProvesAck() bool {
	return p.cfg.Peer.CorruptsOnRetransmit && p.retransmitsOnClear() && !p.fragmented() &&
		p.send.timeouts < deployedRetransmissions
}

// requestWhileHeld sends the SEND_REQUEST of a send that was long held back because the DATA of the peer's message is
// missing. If the peer's SEND_REQUEST for that message was a late duplicate, the peer may be waiting for ours.
func (p *Pair) requestWhileHeld(now Instant, acts []Action) []Action {
	send := &p.send
	send.rto = timer{}
	if p.recv.state != WaitData {
		p.armSend(now, p.cfg.Timing.Clear)
		return acts
	}
	send.phases.Request = now
	return p.transmitRequest(now, acts)
}

// matchesClear reports whether the packet with header h is the CLEAR_TO_SEND that the send is waiting for.
func (p *Pair) matchesClear(h protocol.Header) bool {
	return h.Type == protocol.ClearToSend && p.matchesSend(h)
}

// matchesSend reports whether a receiver's packet matches the message being sent in its call and, in profile V09, in
// its tag.
func (p *Pair) matchesSend(h protocol.Header) bool {
	if p.cfg.Profile == protocol.V09 && h.Tag != p.send.op.Tag {
		return false
	}
	return p.cfg.Peer.IntCallsOnly || h.Call == p.sendCall().Counterpart()
}

// onClear handles CLEAR_TO_SEND. Depending on the state of the send, it starts DATA, proves that the peer is in a
// receive (P16) or that DATA was lost (P14), or is kept for the next send (P7).
func (p *Pair) onClear(now Instant, header protocol.Header, acts []Action) []Action {
	send := &p.send
	if p.answersRevoked(now, header) {
		acts = append(acts, Action{Kind: Drop, Reason: ReasonStale, Header: header})
		return p.transmitRevocation(protocol.SendRequest, header.Size, header.Tag, acts)
	}
	if p.cfg.Peer.BlockingCalls && !p.unansweredClear.valid {
		p.unansweredClear = deferredHeader{valid: true, header: header, receivedAt: now}
	}
	acts = p.clearAfterDone(now, header, acts)
	switch send.state {
	case WaitClear:
		if p.matchesSend(header) {
			return p.startData(now, acts)
		}
		p.deferHeader(now, header)
		return append(acts, Action{Kind: Drop, Reason: ReasonDatatype, Header: header})
	case Held:
		if !p.recv.isActive() && p.clearedPrevious(now) && p.matchesSend(header) {
			return p.startData(now, acts)
		}
		if send.requestsSent > 0 && p.matchesSend(header) {
			return p.clearedWhileHeld(now, header, acts)
		}
	case WaitAck:
		if p.matchesSend(header) && p.provesLoss(now) {
			// Let the timer retransmit, so that an ACK received after this packet is handled first. An ACK received
			// before this packet was a copy.
			send.rto, p.unansweredClear = timer{armed: true, expiry: now}, deferredHeader{}
			send.ackHeld, send.holdTimer = false, timer{}
			return acts
		}
	case Idle:
		if p.clearedPrevious(now) { // the peer is waiting for DATA, and not in the middle of a message
			p.dropInherited(now)
			p.clearPending = true
		}
		if p.cfg.Peer.KeepsRequests && p.deadEnd.isSend && p.unansweredClear.valid &&
			p.mayBeRetransmit(p.unansweredClear.receivedAt, now) {
			p.exitDeadEnd() // the peer is in another receive, and this is not a late copy
		}
		if p.clearPending {
			p.staleClear = deferredHeader{valid: true, header: header, receivedAt: now}
		}
		// Otherwise the CLEAR_TO_SEND is a duplicate, or answers a SEND_REQUEST from before a restart; in that case,
		// the peer will ask again.
		p.clearPending = p.clearPending || p.cfg.Peer.KeepsRequests
	}
	p.deferHeader(now, header)
	return append(acts, Action{Kind: Drop, Reason: ReasonStale, Header: header})
}

// clearedWhileHeld handles a CLEAR_TO_SEND for a send that is held back because we have cleared the peer's own send.
func (p *Pair) clearedWhileHeld(now Instant, header protocol.Header, acts []Action) []Action {
	s := &p.send
	if !p.cfg.Peer.BlockingCalls {
		return p.startData(now, acts) // the peer can do both at once
	}
	again := s.cleared && !s.earlyClear.armed
	s.cleared, s.earlyClear = true, p.untilRetransmit(now)
	if p.recv.state == WaitData && again {
		// The peer asks again, so it is in a receive and not in a send. Its SEND_REQUEST was a late duplicate, and no
		// DATA follows.
		acts = append(acts, Action{Kind: Note, ID: p.recv.op.ID, Event: RequestWasDuplicate, Header: header})
		acts = append(acts, Action{Kind: Repost, ID: p.recv.op.ID})
		p.freeRecv()
		return p.startData(now, acts)
	}
	// A single CLEAR_TO_SEND may itself be a duplicate, so it takes effect only if no other packet follows.
	p.staleClear = deferredHeader{valid: true, header: header, receivedAt: now}
	return append(acts, Action{Kind: Drop, Reason: ReasonStale, Header: header})
}

// onAck handles ACK. A late one, although dropped, ends a dead end, because the peer has received the message (P10).
func (p *Pair) onAck(now Instant, header protocol.Header, acts []Action) []Action {
	send := &p.send
	if send.state == WaitAck && p.matchesSend(header) {
		if p.requestBeforeClear() {
			// It has received since, so it is not in a send.
			acts = append(acts, Action{Kind: Note, Event: RequestWasDuplicate, Header: p.deferred.header})
			p.deferred = deferredHeader{}
		}
		return p.checkAck(now, header, acts)
	}
	p.deferHeader(now, header)
	if p.deadEnd.isSend {
		p.exitDeadEnd() // although late, the ACK shows that the peer is not in the middle of a message
	}
	if send.state != WaitAck && p.mayBeInOurSend() {
		p.dropInherited(now) // the peer is not in the middle of a message from an earlier process either
	}
	reason := ReasonStale
	if send.state == WaitAck {
		reason = ReasonDatatype
	}
	return append(acts, Action{Kind: Drop, Reason: reason, Header: header})
}

// requestInWaitAck handles a SEND_REQUEST from a BlockingCalls peer while our message is waiting for its ACK.
func (p *Pair) requestInWaitAck(now Instant, header protocol.Header, acts []Action) []Action {
	send := &p.send
	if !p.requestBeforeClear() {
		if send.ackHeld { // this SEND_REQUEST shows that the ACK was not a copy
			return p.completeSend(now, acts)
		}
		again := send.peerRequested && !send.earlyRequest.armed
		if !send.peerRequested {
			send.peerRequested, send.earlyRequest = true, p.untilRetransmit(now)
			// allow time for it to come again
			send.deadline.expiry = max(send.deadline.expiry, now+p.cfg.Peer.retransmitSpan()+crossingWindow)
		}
		if !again { // it may be a late copy of an older SEND_REQUEST, which does not come again
			return acts
		}
		acts = append(acts, Action{Kind: Note, ID: send.op.ID, Event: RequestTakenAsAck, Header: header})
		return p.completeSend(now, acts)
	}
	// The peer is still in the send that it was in before it seemed to clear ours. Its CLEAR_TO_SEND was a duplicate,
	// and it did not read our DATA.
	acts = append(acts, Action{Kind: Note, ID: send.op.ID, Event: ClearWasDuplicate, Header: header})
	send.state, send.stateSince, send.timeouts = WaitClear, now, 0
	send.deadline = timerAfter(now, p.cfg.Timing.ClearDeadline)
	p.armSend(now, p.cfg.Timing.Clear)
	return acts
}

// requestBeforeClear reports whether a BlockingCalls peer sent a SEND_REQUEST before our message was cleared that was
// not answered yet.
func (p *Pair) requestBeforeClear() bool {
	q := &p.deferred
	return q.valid && q.header.Type == protocol.SendRequest && p.cfg.Peer.BlockingCalls &&
		q.receivedAt < p.send.phases.Clear
}

// completeSend ends the send successfully.
func (p *Pair) completeSend(now Instant, acts []Action) []Action {
	send := &p.send
	send.phases.Ack = now
	if send.ackHeld {
		p.ackRTT.addSample(send.heldAckDelay)
	} else if send.timeouts == 0 && !p.fragmented() {
		p.ackRTT.addSample(now - send.phases.Clear)
	}
	p.lastSent = sentMessage{valid: send.requestsSent == 1, call: p.sendCall().Counterpart(), earlyClear: send.earlyClear}
	if p.cfg.Peer.BlockingCalls && send.phases.Clear > p.lastReceived.ackedAt {
		p.lastReceived.ackConfirmed = true // the peer's last send ended before it entered the receive for our message
	}
	if p.cfg.Quirks.OneDeferredHeader {
		p.deferred = deferredHeader{}
	}
	return p.endSend(now, nil, acts)
}

// endSend ends the send with the error err, or successfully if err is nil. The Pair is then ready for another send, and
// starts a receive that was held back.
func (p *Pair) endSend(now Instant, err error, acts []Action) []Action {
	send := p.send
	p.send = sending{}
	if p.newSettings != nil {
		p.applySendSettings()
	}
	// A peer that NumbersRequests and has refused the message has already discarded its SEND_REQUEST.
	if _, refused := errors.AsType[*RemoteError](err); err != nil && send.requestsSent > 0 &&
		!(refused && p.usesNumbers()) {
		acts = p.revokeRequest(&send, acts)
	}
	acts = append(acts, Action{Kind: SendDone, ID: send.op.ID, Words: send.op.Words, Err: err, Phases: send.phases})
	if p.recv.state == WaitRequest {
		acts = p.answerDeferred(now, acts)
	}
	return acts
}

// CancelSend cancels a send. It returns false if the Pair has begun to send DATA. The message then continues, the
// caller must keep the payload, and SendDone reports the outcome.
func (p *Pair) CancelSend(now Instant, id ID, acts []Action) ([]Action, bool) {
	send := &p.send
	if send.state == Idle || send.op.ID != id || send.state == WaitAck {
		return acts, false
	}
	if send.requestsSent > 0 {
		acts = p.revokeRequest(send, acts)
	}
	*send = sending{}
	if p.newSettings != nil {
		p.applySendSettings()
	}
	return acts, true
}

// UnansweredClear returns a deployed peer's CLEAR_TO_SEND that DATA has not answered, and the time at which it arrived.
// Unless it is a late duplicate, the peer is blocked in a receive from this rank.
func (p *Pair) UnansweredClear() (h protocol.Header, since Instant, ok bool) {
	return p.unansweredClear.header, p.unansweredClear.receivedAt, p.unansweredClear.valid
}

// SendWait describes what the current send is waiting for. It returns false if no message is being sent.
func (p *Pair) SendWait() (Wait, bool) {
	send := &p.send
	if send.state == Idle {
		return Wait{}, false
	}
	return Wait{
		ID: send.op.ID, State: send.state, Local: p.cfg.Local, Remote: p.cfg.Remote,
		For: send.state.AwaitedPacket(), Since: send.stateSince, Retransmissions: send.phases.Retransmissions,
		Words: send.op.Words,
	}, true
}

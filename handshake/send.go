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
	state    State
	op       SendOp
	since    Instant
	rto      timer
	deadline timer
	tries    int // number of time-outs in this wait, or in the whole message with the CarryOver quirk
	phases   Phases

	requested   int     // number of our SEND_REQUESTs that may be waiting for this message's receive
	requestedAt Instant // when the last one was sent
	dataSent    bool    // DATA was sent at least once
	writing     bool    // DATA is being sent
	cleared     bool    // a CLEAR_TO_SEND was received
	// early runs while a further CLEAR_TO_SEND may be a duplicate of the last one, or may have crossed with DATA.
	early timer
	// asked is set if the peer has asked to send since DATA was sent. askedEarly runs while a further SEND_REQUEST may
	// be a copy of the first one.
	asked      bool
	askedEarly timer
	// ackHeld is set if an ACK was received and is held back while doubt runs, because it may be a copy of an earlier
	// one. heldAnswer is the time that it took to arrive.
	ackHeld    bool
	doubt      timer
	heldAnswer Instant
	// doubtful is set if the peer may have kept a SEND_REQUEST, so that another CLEAR_TO_SEND may belong to its next
	// receive.
	doubtful bool
	// resetSince is set if the peer was restarted, so that it is not waiting for the rest of the message.
	resetSince bool
	// unheard is set if no packet was ever received from the peer, and deadline therefore comes from FirstDeadline.
	unheard bool
	// suspect is set if the peer may be waiting for DATA from an earlier process instead of answering SEND_REQUEST.
	suspect bool
	gone    bool // LeaveSend was called, because the caller is gone
}

const (
	// crossing is the time after DATA within which a CLEAR_TO_SEND may have crossed with it. It is shorter than the
	// time after which a deployed node asks again.
	crossing = deployedFirst / 2
	// prompt is the time within which a SEND_REQUEST is answered if the receive is already posted.
	prompt = 10 * time.Millisecond
)

// Send starts a message. If it cannot, the error is ErrBusy or a *DeadEndError, or wraps ErrEmpty or ErrTooLong.
func (p *Pair) Send(now Instant, op SendOp, acts []Action) ([]Action, error) {
	s := &p.send
	switch {
	case s.state != Idle:
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
	case p.refusesSend():
		return acts, p.dead.err
	}
	*s = sending{state: Held, op: op, since: now, phases: Phases{Start: now}}
	if p.recv.active() {
		if p.cfg.Peer.OneAtATime {
			p.armSend(now, p.cfg.Timing.Clear)
		}
		return acts, nil
	}
	if p.inOurSend() {
		return acts, nil
	}
	return p.request(now, acts), nil
}

// request sends the SEND_REQUEST of a message that is not held back, and starts the wait for CLEAR_TO_SEND.
func (p *Pair) request(now Instant, acts []Action) []Action {
	s := &p.send
	s.state, s.since, s.tries = WaitClear, now, 0
	s.deadline = in(now, p.cfg.Timing.ClearDeadline)
	if t := &p.cfg.Timing; t.FirstDeadline > 0 && !p.received.any() &&
		(t.ClearDeadline == 0 || t.FirstDeadline < t.ClearDeadline) {
		s.unheard, s.deadline = true, in(now, t.FirstDeadline)
	}
	if p.dead.err != nil {
		p.dead.tried, s.deadline = true, in(now, p.tryTime())
	}
	if p.mayWaitForData() {
		s.suspect, s.deadline = true, in(now, restartTime)
	}
	if s.requested == 0 {
		s.phases.Request = now
	}
	p.armSend(now, p.cfg.Timing.Clear)
	if p.clearPending && p.cfg.Peer.KeepsRequests {
		// The peer has kept a SEND_REQUEST, which its next receive answers. It would keep another one for the receive
		// after that.
		s.requested++
	} else {
		acts = p.transmitRequest(now, acts)
	}
	if p.cfg.Quirks.OneDeferredHeader && p.deferred.valid && p.matchesClear(p.deferred.header) {
		return p.transmit(now, acts)
	}
	return p.useStale(now, acts)
}

// useStale sends DATA if the peer has already cleared this send by a CLEAR_TO_SEND that seemed stale.
func (p *Pair) useStale(now Instant, acts []Action) []Action {
	stale := p.stale
	p.stale = deferredHeader{}
	if !stale.valid || !p.matchesClear(stale.header) {
		return acts
	}
	acts = append(acts, Action{Kind: Note, ID: p.send.op.ID, Event: StaleClearUsed})
	return p.transmit(now, acts)
}

func (p *Pair) transmitRequest(now Instant, acts []Action) []Action {
	s := &p.send
	s.requested++
	s.requestedAt, p.requestedAt = now, now
	h := p.header(protocol.SendRequest, p.sendCall(), p.sendNumber(), s.op.Tag)
	return append(acts, Action{Kind: Transmit, ID: s.op.ID, Header: h})
}

func (p *Pair) dataHeader() protocol.Header {
	return p.header(protocol.Data, p.sendCall(), p.send.op.Words, p.send.op.Tag)
}

func (p *Pair) sendCall() protocol.Call {
	if p.cfg.Peer.OnlyInt {
		return protocol.SendInt
	}
	return p.send.op.Datatype.Send()
}

// transmit sends DATA for the first time.
func (p *Pair) transmit(now Instant, acts []Action) []Action {
	p.endEarlier(now) // the peer is in the receive of this message
	s := &p.send
	s.state, s.since = WaitAck, now
	if !p.cfg.Quirks.CarryOver {
		s.tries = 0
	}
	s.phases.Clear = now
	p.stale = deferredHeader{}
	s.resetSince = false
	p.leaveDeadEnd() // the peer has asked for this message
	s.cleared, s.early = true, p.nextClear(now)
	s.doubtful = p.cfg.Peer.KeepsRequests && s.requested > 1
	p.clearPending = s.doubtful && now-s.requestedAt > prompt
	s.deadline = timer{} // set by DataSent
	return p.transmitData(acts)
}

func (p *Pair) transmitData(acts []Action) []Action {
	s := &p.send
	if p.cfg.Quirks.OneDeferredHeader {
		p.deferred = deferredHeader{}
	}
	s.rto, s.writing = timer{}, true
	s.ackHeld, s.doubt = false, timer{}
	p.unanswered = deferredHeader{}
	return append(acts, Action{Kind: TransmitData, ID: s.op.ID, Header: p.dataHeader(), Words: s.op.Words})
}

// DataSent informs the Pair that the caller has executed TransmitData. The wait for ACK begins now, however long the
// transmission took.
func (p *Pair) DataSent(now Instant) {
	s := &p.send
	if s.state != WaitAck {
		return
	}
	if !s.dataSent { // retransmissions do not extend the deadline
		s.deadline = in(now, bound(p.cfg.Timing.AckDeadline, s.gone))
	}
	s.dataSent, s.writing, s.phases.Data = true, false, now
	if !p.retransmitsOnClear() {
		p.armSend(now, p.cfg.Timing.Ack)
		return
	}
	s.early = timer{on: true, at: max(s.early.at, now+crossing)}
}

// retransmitsOnClear reports whether DATA is retransmitted only if the peer asks for it by CLEAR_TO_SEND.
func (p *Pair) retransmitsOnClear() bool {
	return p.cfg.Peer.RetransmitsClear > 0 && !p.cfg.Reliable &&
		!(p.cfg.OnPartial == RetransmitPartial && p.cfg.Peer.CorruptsOnRetransmit)
}

// provesLoss handles a CLEAR_TO_SEND that comes after DATA was sent. It reports whether this proves that the peer has
// nothing of the message, because it received none or discarded it. The CLEAR_TO_SEND proves nothing in three cases: it
// follows the last one sooner than the peer retransmits it, so that one of the two is a duplicate or late; it may have
// been sent before all of DATA arrived, so that the message may still be received; or it may belong to the peer's next
// receive.
func (p *Pair) provesLoss(now Instant) bool {
	s := &p.send
	early := s.early.on
	s.early = p.nextClear(now)
	return p.retransmitsOnClear() && !s.doubtful && !early && !s.writing
}

// nextClear returns a timer that runs until the peer may retransmit the CLEAR_TO_SEND or SEND_REQUEST that was just
// received. It is a tenth shorter than the peer's time-out, to allow for clock differences and transit.
func (p *Pair) nextClear(now Instant) timer {
	return in(now, p.cfg.Peer.RetransmitsClear*9/10)
}

// fragmented reports whether the message being sent needs several datagrams.
func (p *Pair) fragmented() bool { return p.fragments(p.send.op.Words) }

// fragments reports whether a message of the given number of words needs several datagrams.
func (p *Pair) fragments(words uint32) bool {
	return !p.cfg.Reliable && p.cfg.Shape.Datagrams(words) > 1
}

func (p *Pair) armSend(now Instant, b Backoff) {
	p.send.rto = timer{}
	if p.cfg.Reliable {
		return
	}
	if d, ok := b.after(p.send.tries); ok {
		p.send.rto = in(now, d)
	}
}

func (p *Pair) retransmitRequest(now Instant, acts []Action) []Action {
	s := &p.send
	s.tries++
	s.phases.Retransmissions++
	p.armSend(now, p.cfg.Timing.Clear)
	acts = p.transmitRequest(now, acts)
	return append(acts, Action{Kind: Note, ID: s.op.ID, Event: Retransmitted, Header: acts[len(acts)-1].Header})
}

func (p *Pair) retransmitData(acts []Action) []Action {
	s := &p.send
	s.tries++
	s.phases.Retransmissions++
	p.lossy = true
	acts = p.transmitData(acts)
	return append(acts, Action{Kind: Note, ID: s.op.ID, Event: Retransmitted, Header: acts[len(acts)-1].Header})
}

// tickSend handles the timers of the sending half.
func (p *Pair) tickSend(now Instant, acts []Action) []Action {
	s := &p.send
	if s.ackHeld && (s.doubt.due(now) || s.deadline.due(now)) {
		return p.acked(now, acts) // nothing contradicts it
	}
	if s.deadline.due(now) {
		switch {
		case p.dead.err != nil: // this send was a trial
			return p.endSend(now, p.dead.err, acts)
		case s.suspect && s.state == WaitClear:
			return p.endSend(now, p.restartError(MayWaitForData, now-s.since), acts)
		case s.state == WaitAck && p.retransmitsOnClear() && p.fragmented():
			return p.ackOverdue(now, acts)
		}
		w, _ := p.SendWait()
		err := &TimeoutError{Wait: w, Elapsed: now - s.since, Unheard: s.unheard}
		err.Silent = s.state == WaitAck && !s.asked && p.silenceTells() && err.Elapsed >= p.cfg.Peer.asksWithin()
		return p.endSend(now, err, acts)
	}
	if !s.rto.due(now) {
		return acts
	}
	switch s.state {
	case Held:
		return p.requestWhileHeld(now, acts)
	case WaitClear:
		return p.retransmitRequest(now, acts)
	}
	return p.retransmitData(acts)
}

// heard records that a packet was received from the peer. From then on, the usual deadline applies to the wait for
// CLEAR_TO_SEND.
func (p *Pair) heard() {
	s := &p.send
	if !s.unheard {
		return
	}
	if s.unheard = false; s.state == WaitClear {
		s.deadline = in(s.since, p.cfg.Timing.ClearDeadline)
	}
}

// silenceTells reports whether the peer's silence shows that it has the message, because an FPGA that lacks DATA asks
// for it again. An FPGA asks three times, and for a fragmented message only until it has received the first datagram.
func (p *Pair) silenceTells() bool {
	return p.cfg.Peer.CorruptsOnRetransmit && p.retransmitsOnClear() && !p.fragmented() &&
		p.send.tries < deployedRetransmissions
}

// requestWhileHeld sends the SEND_REQUEST of a send that has long been held behind a message of which nothing was
// received. If the SEND_REQUEST of that message was a late duplicate, the peer may be waiting for ours.
func (p *Pair) requestWhileHeld(now Instant, acts []Action) []Action {
	s := &p.send
	s.rto = timer{}
	if p.recv.state != WaitData {
		p.armSend(now, p.cfg.Timing.Clear)
		return acts
	}
	s.phases.Request = now
	return p.transmitRequest(now, acts)
}

// matchesClear reports whether h is the CLEAR_TO_SEND for which the send is waiting.
func (p *Pair) matchesClear(h protocol.Header) bool {
	return h.Type == protocol.ClearToSend && p.matchesSend(h)
}

// matchesSend reports whether the call, and in V09 the tag, of a receiver's packet match the message being sent.
func (p *Pair) matchesSend(h protocol.Header) bool {
	if p.cfg.Profile == protocol.V09 && h.Tag != p.send.op.Tag {
		return false
	}
	return p.cfg.Peer.OnlyInt || h.Call == p.sendCall().Counterpart()
}

func (p *Pair) onClear(now Instant, h protocol.Header, acts []Action) []Action {
	s := &p.send
	if p.answersWithdrawn(now, h) {
		acts = append(acts, Action{Kind: Drop, Reason: ReasonStale, Header: h})
		return p.transmitRevocation(protocol.SendRequest, h.Size, h.Tag, acts)
	}
	if p.cfg.Peer.OneAtATime && !p.unanswered.valid {
		p.unanswered = deferredHeader{valid: true, header: h, at: now}
	}
	acts = p.clearAfterDone(now, h, acts)
	switch s.state {
	case WaitClear:
		if p.matchesSend(h) {
			return p.transmit(now, acts)
		}
		p.deferHeader(now, h)
		return append(acts, Action{Kind: Drop, Reason: ReasonDatatype, Header: h})
	case Held:
		if !p.recv.active() && p.clearedEarlier(now) && p.matchesSend(h) {
			return p.transmit(now, acts)
		}
		if s.requested > 0 && p.matchesSend(h) {
			return p.clearedWhileHeld(now, h, acts)
		}
	case WaitAck:
		if p.matchesSend(h) && p.provesLoss(now) {
			// Let the timer retransmit, so that an ACK received after this packet is handled first. An ACK received
			// before this packet was a copy.
			s.rto, p.unanswered = timer{on: true, at: now}, deferredHeader{}
			s.ackHeld, s.doubt = false, timer{}
			return acts
		}
	case Idle:
		if p.clearedEarlier(now) { // the peer is waiting for DATA, and not in the middle of a message
			p.endEarlier(now)
			p.clearPending = true
		}
		if p.cfg.Peer.KeepsRequests && p.dead.sent && p.unanswered.valid && p.asksAgain(p.unanswered.at, now) {
			p.leaveDeadEnd() // the peer is in another receive, and this is not a late copy
		}
		if p.clearPending {
			p.stale = deferredHeader{valid: true, header: h, at: now}
		}
		// Otherwise it is a duplicate, or it answers a SEND_REQUEST from before a restart, and the peer will ask again.
		p.clearPending = p.clearPending || p.cfg.Peer.KeepsRequests
	}
	p.deferHeader(now, h)
	return append(acts, Action{Kind: Drop, Reason: ReasonStale, Header: h})
}

// clearedWhileHeld handles a CLEAR_TO_SEND for a send that is held back because the peer's own send was cleared.
func (p *Pair) clearedWhileHeld(now Instant, h protocol.Header, acts []Action) []Action {
	s := &p.send
	if !p.cfg.Peer.OneAtATime {
		return p.transmit(now, acts) // the peer can do both at once
	}
	again := s.cleared && !s.early.on
	s.cleared, s.early = true, p.nextClear(now)
	if p.recv.state == WaitData && again {
		// The peer asks again, so it is in a receive and not in a send. Its SEND_REQUEST was a late duplicate, and no
		// DATA follows.
		acts = append(acts, Action{Kind: Note, ID: p.recv.op.ID, Event: RequestWasDuplicate, Header: h})
		acts = append(acts, Action{Kind: Repost, ID: p.recv.op.ID})
		p.freeRecv()
		return p.transmit(now, acts)
	}
	// A single CLEAR_TO_SEND may itself be a duplicate. It is used if nothing else comes.
	p.stale = deferredHeader{valid: true, header: h, at: now}
	return append(acts, Action{Kind: Drop, Reason: ReasonStale, Header: h})
}

func (p *Pair) onAck(now Instant, h protocol.Header, acts []Action) []Action {
	s := &p.send
	if s.state == WaitAck && p.matchesSend(h) {
		if p.requestBeforeClear() {
			// It has received since, so it is not in a send.
			acts = append(acts, Action{Kind: Note, Event: RequestWasDuplicate, Header: p.deferred.header})
			p.deferred = deferredHeader{}
		}
		return p.ackCame(now, h, acts)
	}
	p.deferHeader(now, h)
	if p.dead.sent {
		p.leaveDeadEnd() // although late, the ACK shows that the peer is not in the middle of a message
	}
	if s.state != WaitAck && p.inOurSend() {
		p.endEarlier(now) // the peer is not in the middle of a message from an earlier process either
	}
	reason := ReasonStale
	if s.state == WaitAck {
		reason = ReasonDatatype
	}
	return append(acts, Action{Kind: Drop, Reason: reason, Header: h})
}

// requestInWaitAck handles a SEND_REQUEST from a OneAtATime peer while our message is waiting for its ACK.
func (p *Pair) requestInWaitAck(now Instant, h protocol.Header, acts []Action) []Action {
	s := &p.send
	if !p.requestBeforeClear() {
		if s.ackHeld { // this SEND_REQUEST shows that the ACK was not a copy
			return p.acked(now, acts)
		}
		again := s.asked && !s.askedEarly.on
		if !s.asked {
			s.asked, s.askedEarly = true, p.nextClear(now)
			s.deadline.at = max(s.deadline.at, now+p.cfg.Peer.asksWithin()+crossing) // allow time for it to come again
		}
		if !again { // it may be a late copy of an older SEND_REQUEST, which does not come again
			return acts
		}
		acts = append(acts, Action{Kind: Note, ID: s.op.ID, Event: RequestTakenAsAck, Header: h})
		return p.acked(now, acts)
	}
	// The peer is still in the send in which it was before it seemed to clear ours. That CLEAR_TO_SEND was a duplicate,
	// and the peer did not read our DATA.
	acts = append(acts, Action{Kind: Note, ID: s.op.ID, Event: ClearWasDuplicate, Header: h})
	s.state, s.since, s.tries = WaitClear, now, 0
	s.deadline = in(now, p.cfg.Timing.ClearDeadline)
	p.armSend(now, p.cfg.Timing.Clear)
	return acts
}

// requestBeforeClear reports whether a OneAtATime peer asked to send before our message was cleared, and has not been
// answered.
func (p *Pair) requestBeforeClear() bool {
	q := &p.deferred
	return q.valid && q.header.Type == protocol.SendRequest && p.cfg.Peer.OneAtATime && q.at < p.send.phases.Clear
}

// acked ends the send successfully.
func (p *Pair) acked(now Instant, acts []Action) []Action {
	s := &p.send
	s.phases.Ack = now
	if s.ackHeld {
		p.ack.learn(s.heldAnswer)
	} else if s.tries == 0 && !p.fragmented() {
		p.ack.learn(now - s.phases.Clear)
	}
	p.done = doneSend{valid: s.requested == 1, call: p.sendCall().Counterpart(), early: s.early}
	if p.cfg.Peer.OneAtATime && s.phases.Clear > p.last.acked {
		p.last.known = true // the peer's last send ended before it entered the receive for our message
	}
	if p.cfg.Quirks.OneDeferredHeader {
		p.deferred = deferredHeader{}
	}
	return p.endSend(now, nil, acts)
}

// endSend ends the send with err or nil, frees the sending half, and starts a receive that was held back.
func (p *Pair) endSend(now Instant, err error, acts []Action) []Action {
	s := p.send
	p.send = sending{}
	if p.next != nil {
		p.renewSend()
	}
	// A numbered peer that has refused the message no longer has its SEND_REQUEST.
	if _, refused := errors.AsType[*RemoteError](err); err != nil && s.requested > 0 && !(refused && p.numbered()) {
		acts = p.leaveRequest(&s, acts)
	}
	acts = append(acts, Action{Kind: SendDone, ID: s.op.ID, Words: s.op.Words, Err: err, Phases: s.phases})
	if p.recv.state == WaitRequest {
		acts = p.answerDeferred(now, acts)
	}
	return acts
}

// CancelSend cancels a send. It returns false if DATA is already being sent. The message then continues, the caller
// must keep the payload, and SendDone reports the outcome.
func (p *Pair) CancelSend(now Instant, id ID, acts []Action) ([]Action, bool) {
	s := &p.send
	if s.state == Idle || s.op.ID != id || s.state == WaitAck {
		return acts, false
	}
	if s.requested > 0 {
		acts = p.leaveRequest(s, acts)
	}
	*s = sending{}
	if p.next != nil {
		p.renewSend()
	}
	return acts, true
}

// UnansweredClear returns the CLEAR_TO_SEND from a deployed peer that was not answered with DATA, and when it arrived.
// Unless it is a late duplicate, the peer is blocked in a receive from this rank.
func (p *Pair) UnansweredClear() (h protocol.Header, since Instant, ok bool) {
	return p.unanswered.header, p.unanswered.at, p.unanswered.valid
}

// SendWait describes what the message being sent is waiting for, and returns false if there is no such message.
func (p *Pair) SendWait() (Wait, bool) {
	s := &p.send
	if s.state == Idle {
		return Wait{}, false
	}
	return Wait{
		ID: s.op.ID, State: s.state, Local: p.cfg.Local, Remote: p.cfg.Remote,
		For: s.state.WaitsFor(), Since: s.since, Retransmissions: s.phases.Retransmissions, Words: s.op.Words,
	}, true
}

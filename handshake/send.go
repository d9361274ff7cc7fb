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

// sending is the state of the sender's half of a pair.
type sending struct {
	state    State
	op       SendOp
	since    Instant
	rto      timer
	deadline timer
	tries    int // time-outs in this wait, or of the whole message with the CarryOver quirk
	phases   Phases

	requested   int     // SEND_REQUESTs of ours that may wait for this message's receive
	requestedAt Instant // when the last one was sent
	dataSent    bool    // DATA was sent at least once
	writing     bool    // DATA is being sent
	cleared     bool    // a CLEAR_TO_SEND was received
	// early runs while a further CLEAR_TO_SEND may be a duplicate of the last one, or may have been sent before DATA
	// arrived.
	early timer
	// asked: the peer has asked to send since DATA was sent; askedEarly runs while a further SEND_REQUEST may be a copy
	// of that one.
	asked      bool
	askedEarly timer
	// ackHeld: an ACK was received and is held back while doubt runs, as it may be a copy of an earlier one; heldAnswer
	// is the time that it took to come.
	ackHeld    bool
	doubt      timer
	heldAnswer Instant
	// doubtful: the peer may have kept a SEND_REQUEST, so that another CLEAR_TO_SEND may be for its next receive.
	doubtful bool
	// resetSince: the peer was restarted, so it does not wait for the rest of the message.
	resetSince bool
	// unheard: no packet was ever received from the peer, and deadline is FirstDeadline.
	unheard bool
	// suspect: the peer may wait for the DATA of an earlier process instead of answering SEND_REQUEST.
	suspect bool
	gone    bool // its caller is gone, and LeaveSend was called
}

const (
	// crossing is the time after DATA within which a CLEAR_TO_SEND may have been sent before DATA arrived. It is
	// shorter than the time after which a deployed node asks again.
	crossing = deployedFirst / 2
	// prompt is the time within which CLEAR_TO_SEND answers a SEND_REQUEST if the receive was already posted.
	prompt = 10 * time.Millisecond
)

// Send starts a message. It returns ErrEmpty, ErrTooLong, ErrBusy or a *DeadEndError for a message that cannot be
// started.
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

// request sends SEND_REQUEST for a held message.
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
		// The peer has kept a SEND_REQUEST for this receive, and would keep another one for its next receive.
		s.requested++
	} else {
		acts = p.transmitRequest(now, acts)
	}
	if p.cfg.Quirks.OneDeferredHeader && p.deferred.valid && p.matchesClear(p.deferred.header) {
		return p.transmit(now, acts)
	}
	return p.useStale(now, acts)
}

// useStale sends DATA if the peer has already cleared this send.
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

// DataSent informs the pair that all of TransmitData was handed to the network, however long that took: its wait for
// ACK begins now.
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

// retransmitsOnClear reports whether DATA is retransmitted only when the peer asks for it.
func (p *Pair) retransmitsOnClear() bool {
	return p.cfg.Peer.RetransmitsClear > 0 && !p.cfg.Reliable &&
		!(p.cfg.OnPartial == RetransmitPartial && p.cfg.Peer.CorruptsOnRetransmit)
}

// provesLoss handles a CLEAR_TO_SEND that comes after DATA was sent, and reports whether it proves that the peer has
// discarded all it had of the message, or never received any of it. It proves nothing if it follows the last one sooner
// than the peer asks again, because one of them is then a duplicate or late; if it may have been sent before all of
// DATA arrived, so that the message may still be received; or if it may be for the peer's next receive.
func (p *Pair) provesLoss(now Instant) bool {
	s := &p.send
	early := s.early.on
	s.early = p.nextClear(now)
	return p.retransmitsOnClear() && !s.doubtful && !early && !s.writing
}

// nextClear returns a timer that runs until a CLEAR_TO_SEND or SEND_REQUEST may be the retransmission of the one just
// received. A tenth is allowed for clock differences and transit.
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

// tickSend handles the timers of the sender's half.
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

// heard notes that a packet was received from the peer. From then on a send waits for it by the usual deadline.
func (p *Pair) heard() {
	s := &p.send
	if !s.unheard {
		return
	}
	if s.unheard = false; s.state == WaitClear {
		s.deadline = in(s.since, p.cfg.Timing.ClearDeadline)
	}
}

// silenceTells reports whether an FPGA without the message that was sent would ask for it again. It asks three times,
// and for a fragmented message only until it has the first datagram.
func (p *Pair) silenceTells() bool {
	return p.cfg.Peer.CorruptsOnRetransmit && p.retransmitsOnClear() && !p.fragmented() &&
		p.send.tries < deployedRetransmissions
}

// requestWhileHeld sends the SEND_REQUEST of a send that has long been held behind a message of which nothing was
// received: if the SEND_REQUEST for that message was a late duplicate, the peer may be waiting for ours.
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

// matchesClear reports whether h is the CLEAR_TO_SEND that the send waits for.
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
			// Retransmit by the timer, so that an ACK received after this packet is handled first. An ACK received
			// before it was a copy.
			s.rto, p.unanswered = timer{on: true, at: now}, deferredHeader{}
			s.ackHeld, s.doubt = false, timer{}
			return acts
		}
	case Idle:
		if p.clearedEarlier(now) { // the peer waits for DATA, and is not in the middle of a message
			p.endEarlier(now)
			p.clearPending = true
		}
		if p.cfg.Peer.KeepsRequests && p.dead.sent && p.unanswered.valid && p.asksAgain(p.unanswered.at, now) {
			p.leaveDeadEnd() // it is in another receive, and this is no late copy
		}
		if p.clearPending {
			p.stale = deferredHeader{valid: true, header: h, at: now}
		}
		// Otherwise it is a duplicate, or answers a SEND_REQUEST from before a restart; then the peer will ask again.
		p.clearPending = p.clearPending || p.cfg.Peer.KeepsRequests
	}
	p.deferHeader(now, h)
	return append(acts, Action{Kind: Drop, Reason: ReasonStale, Header: h})
}

// clearedWhileHeld handles a CLEAR_TO_SEND for a send that is held back because the peer has asked to send as well, and
// was cleared.
func (p *Pair) clearedWhileHeld(now Instant, h protocol.Header, acts []Action) []Action {
	s := &p.send
	if !p.cfg.Peer.OneAtATime {
		return p.transmit(now, acts) // it does both at once
	}
	again := s.cleared && !s.early.on
	s.cleared, s.early = true, p.nextClear(now)
	if p.recv.state == WaitData && again {
		// The peer asks again, so it is in a receive and not in a send: its SEND_REQUEST was a late duplicate, and no
		// DATA follows.
		acts = append(acts, Action{Kind: Note, ID: p.recv.op.ID, Event: RequestWasDuplicate, Header: h})
		acts = append(acts, Action{Kind: Repost, ID: p.recv.op.ID})
		p.freeRecv()
		return p.transmit(now, acts)
	}
	// A single one may itself be a duplicate. It is used if nothing else comes.
	p.stale = deferredHeader{valid: true, header: h, at: now}
	return append(acts, Action{Kind: Drop, Reason: ReasonStale, Header: h})
}

func (p *Pair) onAck(now Instant, h protocol.Header, acts []Action) []Action {
	s := &p.send
	if s.state == WaitAck && p.matchesSend(h) {
		if p.requestBeforeClear() {
			// It has received since, so it is in no send.
			acts = append(acts, Action{Kind: Note, Event: RequestWasDuplicate, Header: p.deferred.header})
			p.deferred = deferredHeader{}
		}
		return p.ackCame(now, h, acts)
	}
	p.deferHeader(now, h)
	if p.dead.sent {
		p.leaveDeadEnd() // late, but it came: the peer is not in the middle of a message
	}
	if s.state != WaitAck && p.inOurSend() {
		p.endEarlier(now) // nor in the middle of a message of an earlier process
	}
	reason := ReasonStale
	if s.state == WaitAck {
		reason = ReasonDatatype
	}
	return append(acts, Action{Kind: Drop, Reason: reason, Header: h})
}

// requestInWaitAck handles a SEND_REQUEST of a OneAtATime peer while our message waits for its ACK.
func (p *Pair) requestInWaitAck(now Instant, h protocol.Header, acts []Action) []Action {
	s := &p.send
	if !p.requestBeforeClear() {
		if s.ackHeld { // this SEND_REQUEST shows that the ACK was no copy
			return p.acked(now, acts)
		}
		again := s.asked && !s.askedEarly.on
		if !s.asked {
			s.asked, s.askedEarly = true, p.nextClear(now)
			s.deadline.at = max(s.deadline.at, now+p.cfg.Peer.asksWithin()+crossing) // allow time for it to come again
		}
		if !again { // it may be a late copy of an older one, which does not come again
			return acts
		}
		acts = append(acts, Action{Kind: Note, ID: s.op.ID, Event: RequestTakenAsAck, Header: h})
		return p.acked(now, acts)
	}
	// The peer is still in the send that it was in before it seemed to clear ours: that CLEAR_TO_SEND was a duplicate,
	// and our DATA went unread.
	acts = append(acts, Action{Kind: Note, ID: s.op.ID, Event: ClearWasDuplicate, Header: h})
	s.state, s.since, s.tries = WaitClear, now, 0
	s.deadline = in(now, p.cfg.Timing.ClearDeadline)
	p.armSend(now, p.cfg.Timing.Clear)
	return acts
}

// requestBeforeClear reports whether the peer asked to send before it cleared our message, and was not answered.
func (p *Pair) requestBeforeClear() bool {
	q := &p.deferred
	return q.valid && q.header.Type == protocol.SendRequest && p.cfg.Peer.OneAtATime && q.at < p.send.phases.Clear
}

// acked completes the send successfully.
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
		p.last.known = true // its last send ended before it entered the receive for our message
	}
	if p.cfg.Quirks.OneDeferredHeader {
		p.deferred = deferredHeader{}
	}
	return p.endSend(now, nil, acts)
}

// endSend frees the sender's half, and starts a receive that waited for it.
func (p *Pair) endSend(now Instant, err error, acts []Action) []Action {
	s := p.send
	p.send = sending{}
	if p.next != nil {
		p.renewSend()
	}
	// it has no request
	if _, refused := errors.AsType[*RemoteError](err); err != nil && s.requested > 0 && !(refused && p.numbered()) {
		acts = p.leaveRequest(&s, acts)
	}
	acts = append(acts, Action{Kind: SendDone, ID: s.op.ID, Words: s.op.Words, Err: err, Phases: s.phases})
	if p.recv.state == WaitRequest {
		acts = p.answerDeferred(now, acts)
	}
	return acts
}

// CancelSend cancels a send. It returns false if DATA is already being sent: then the message continues, the caller
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

// UnansweredClear returns the CLEAR_TO_SEND of a deployed peer that was not answered with DATA, and when it came.
// Unless it is a late duplicate, the peer is blocked in a receive from us.
func (p *Pair) UnansweredClear() (h protocol.Header, since Instant, ok bool) {
	return p.unanswered.header, p.unanswered.at, p.unanswered.valid
}

// SendWait describes the wait of the message being sent, and returns false if there is no such message.
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

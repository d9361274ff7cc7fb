package handshake

import (
	"errors"
	"fmt"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// SendOp is a message to be sent.
type SendOp struct {
	ID       ID
	Words    uint32
	Datatype protocol.Datatype
	Tag      uint8
}

// sending is the sender's half of a pair.
type sending struct {
	state    State
	op       SendOp
	since    Instant
	rto      timer
	deadline timer
	tries    int // time-outs so far in this wait, or in all with the CarryOver quirk
	phases   Phases

	requested   int     // how many SEND_REQUESTs of ours may wait for this message's receive
	requestedAt Instant // when the last of them was sent
	dataSent    bool    // DATA has been sent once
	writing     bool    // DATA is being sent
	cleared     bool    // a CLEAR_TO_SEND has come
	// early runs while another CLEAR_TO_SEND may be a duplicate of the last, or may have
	// been sent before DATA arrived.
	early timer
	// asked: the peer has asked to send since DATA went out; askedEarly runs while another SEND_REQUEST may be a copy
	// of that one.
	asked      bool
	askedEarly timer
	// ackHeld: an ACK has come, and is held back while doubt runs, as it may be a copy of an earlier one; heldAnswer
	// is the time in which it came.
	ackHeld    bool
	doubt      timer
	heldAnswer Instant
	// doubtful: the peer may have kept a SEND_REQUEST, so that another
	// CLEAR_TO_SEND may be for its next receive.
	doubtful bool
	// resetSince: the peer was restarted, so the rest of the message is not missed there.
	resetSince bool
	// unheard: no packet has ever come from the peer, and deadline is FirstDeadline.
	unheard bool
	// suspect: the peer may wait for a message of an earlier process instead of answering SEND_REQUEST.
	suspect bool
	gone    bool // its caller is, and LeaveSend was called
}

const (
	// crossing is how long after DATA a CLEAR_TO_SEND may come that was sent
	// before DATA arrived. It is shorter than the time after which a deployed
	// node asks again.
	crossing = deployedFirst / 2
	// prompt is within what time CLEAR_TO_SEND answers a SEND_REQUEST if the
	// receive was posted.
	prompt = 10 * time.Millisecond
)

// Send starts a message. The error is one that the caller can know beforehand:
// ErrEmpty, ErrTooLong, ErrBusy, or a DeadEndError.
func (p *Pair) Send(now Instant, op SendOp, acts []Action) ([]Action, error) {
	s := &p.send
	switch {
	case s.state != Idle:
		return acts, ErrBusy
	case op.Words == 0 && p.cfg.Peer.RefusesEmpty:
		return acts, fmt.Errorf("rank %d → rank %d: %w: it waits for payload forever; send at least one word", p.cfg.Local, p.cfg.Remote, ErrEmpty)
	case op.Words > p.cfg.MaxWords:
		return acts, fmt.Errorf("rank %d → rank %d: %d words: %w (%d)", p.cfg.Local, p.cfg.Remote, op.Words, ErrTooLong, p.cfg.MaxWords)
	case p.cfg.PeerWords > 0 && op.Words > p.cfg.PeerWords:
		return acts, fmt.Errorf("rank %d → rank %d: %d words: %w: the kernel of rank %[2]d takes %[5]d at most (kernel_options.words)",
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

// request sends SEND_REQUEST for a message that was held.
func (p *Pair) request(now Instant, acts []Action) []Action {
	s := &p.send
	s.state, s.since, s.tries = WaitClear, now, 0
	s.deadline = in(now, p.cfg.Timing.ClearDeadline)
	if t := &p.cfg.Timing; t.FirstDeadline > 0 && !p.received.any() && (t.ClearDeadline == 0 || t.FirstDeadline < t.ClearDeadline) {
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
		// It has kept a SEND_REQUEST for this receive. Another one would
		// be kept for the next.
		s.requested++
	} else {
		acts = p.transmitRequest(now, acts)
	}
	if p.cfg.Quirks.OneDeferredHeader && p.deferred.valid && p.matchesClear(p.deferred.header) {
		return p.transmit(now, acts)
	}
	return p.useStale(now, acts)
}

// useStale sends DATA if the peer's receive has cleared us already.
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
	p.leaveDeadEnd() // it has asked for this message
	s.cleared, s.early = true, p.nextClear(now)
	s.doubtful = p.cfg.Peer.KeepsRequests && s.requested > 1
	p.clearPending = s.doubtful && now-s.requestedAt > prompt
	s.deadline = timer{} // until DataSent
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

// DataSent informs the pair when all of TransmitData had been given to the
// network: its wait for ACK begins then, however long that took.
func (p *Pair) DataSent(now Instant) {
	s := &p.send
	if s.state != WaitAck {
		return
	}
	if !s.dataSent { // retransmissions do not put the deadline off
		s.deadline = in(now, bound(p.cfg.Timing.AckDeadline, s.gone))
	}
	s.dataSent, s.writing, s.phases.Data = true, false, now
	if !p.retransmitsOnClear() {
		p.armSend(now, p.cfg.Timing.Ack)
		return
	}
	s.early = timer{on: true, at: max(s.early.at, now+crossing)}
}

// retransmitsOnClear reports whether DATA is retransmitted only when the peer asks
// for it.
func (p *Pair) retransmitsOnClear() bool {
	return p.cfg.Peer.RetransmitsClear > 0 && !p.cfg.Reliable &&
		!(p.cfg.OnPartial == RetransmitPartial && p.cfg.Peer.CorruptsOnRetransmit)
}

// provesLoss takes a CLEAR_TO_SEND that comes when DATA was sent, and reports
// whether it shows that the peer has discarded what it had of the message, or had
// nothing of it. It does not if it comes sooner after the last one than the peer
// asks again, for then one of them is a duplicate or late; if it may have been
// sent before all of DATA arrived, and the message may yet be received; or if it may
// be for the peer's next receive.
func (p *Pair) provesLoss(now Instant) bool {
	s := &p.send
	early := s.early.on
	s.early = p.nextClear(now)
	return p.retransmitsOnClear() && !s.doubtful && !early && !s.writing
}

// nextClear is from when on a CLEAR_TO_SEND or SEND_REQUEST may be the retransmission of the one that has
// come. A tenth is allowed for clocks and for the way.
func (p *Pair) nextClear(now Instant) timer {
	return in(now, p.cfg.Peer.RetransmitsClear*9/10)
}

// fragmented reports whether the message being sent takes several datagrams.
func (p *Pair) fragmented() bool { return p.fragments(p.send.op.Words) }

// fragments reports whether a message of so many words takes several datagrams.
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

// tickSend acts on the sender's times.
func (p *Pair) tickSend(now Instant, acts []Action) []Action {
	s := &p.send
	if s.ackHeld && (s.doubt.due(now) || s.deadline.due(now)) {
		return p.acked(now, acts) // nothing contradicts it
	}
	if s.deadline.due(now) {
		switch {
		case p.dead.err != nil: // it was tried
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

// heard notes that a packet has come from the peer: a send waits for it as for others from then on.
func (p *Pair) heard() {
	s := &p.send
	if !s.unheard {
		return
	}
	if s.unheard = false; s.state == WaitClear {
		s.deadline = in(s.since, p.cfg.Timing.ClearDeadline)
	}
}

// silenceTells reports whether an FPGA that lacks the message that was sent would ask for it again. It does so three
// times; of a message in several datagrams only until it has the first.
func (p *Pair) silenceTells() bool {
	return p.cfg.Peer.CorruptsOnRetransmit && p.retransmitsOnClear() && !p.fragmented() && p.send.tries < deployedRetransmissions
}

// requestWhileHeld sends the SEND_REQUEST of a send that has been held back for
// long, behind a message of which nothing has come: if what announced that one was
// a late duplicate, the peer may wait for ours.
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

// matchesClear reports whether h is the CLEAR_TO_SEND that the send needs.
func (p *Pair) matchesClear(h protocol.Header) bool {
	return h.Type == protocol.ClearToSend && p.matchesSend(h)
}

// matchesSend compares the call, and the tag where the profile has one, of a
// receiver's packet with the message being sent.
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
			// By the timer, so that an ACK that has arrived behind it is
			// taken first. One that came before was a copy.
			s.rto, p.unanswered = timer{on: true, at: now}, deferredHeader{}
			s.ackHeld, s.doubt = false, timer{}
			return acts
		}
	case Idle:
		if p.clearedEarlier(now) { // it waits for DATA, and is in the middle of nothing
			p.endEarlier(now)
			p.clearPending = true
		}
		if p.cfg.Peer.KeepsRequests && p.dead.sent && p.unanswered.valid && p.asksAgain(p.unanswered.at, now) {
			p.leaveDeadEnd() // it is in another receive, and this is no late copy
		}
		if p.clearPending {
			p.stale = deferredHeader{valid: true, header: h, at: now}
		}
		// Or it is a duplicate, or the answer to a SEND_REQUEST from
		// before a restart; then the peer will ask again.
		p.clearPending = p.clearPending || p.cfg.Peer.KeepsRequests
	}
	p.deferHeader(now, h)
	return append(acts, Action{Kind: Drop, Reason: ReasonStale, Header: h})
}

// clearedWhileHeld takes a CLEAR_TO_SEND for a send that is held back because the
// peer has asked to send as well, and was cleared.
func (p *Pair) clearedWhileHeld(now Instant, h protocol.Header, acts []Action) []Action {
	s := &p.send
	if !p.cfg.Peer.OneAtATime {
		return p.transmit(now, acts) // it does both
	}
	again := s.cleared && !s.early.on
	s.cleared, s.early = true, p.nextClear(now)
	if p.recv.state == WaitData && again {
		// It asks again, so it is in a receive, and in no send: what asked
		// to send was a late duplicate. Nothing will come.
		acts = append(acts, Action{Kind: Note, ID: p.recv.op.ID, Event: RequestWasDuplicate, Header: h})
		acts = append(acts, Action{Kind: Repost, ID: p.recv.op.ID})
		p.freeRecv()
		return p.transmit(now, acts)
	}
	// A single one may itself be a duplicate. It counts if nothing else comes.
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
		p.leaveDeadEnd() // late, but it came: the peer is not in the middle of anything
	}
	if s.state != WaitAck && p.inOurSend() {
		p.endEarlier(now) // nor of a message of an earlier process
	}
	reason := ReasonStale
	if s.state == WaitAck {
		reason = ReasonDatatype
	}
	return append(acts, Action{Kind: Drop, Reason: reason, Header: h})
}

// requestInWaitAck takes a SEND_REQUEST of a peer that does one thing at a time,
// while our message waits for its ACK.
func (p *Pair) requestInWaitAck(now Instant, h protocol.Header, acts []Action) []Action {
	s := &p.send
	if !p.requestBeforeClear() {
		if s.ackHeld { // and that it came shows that the ACK was no copy
			return p.acked(now, acts)
		}
		again := s.asked && !s.askedEarly.on
		if !s.asked {
			s.asked, s.askedEarly = true, p.nextClear(now)
			s.deadline.at = max(s.deadline.at, now+p.cfg.Peer.asksWithin()+crossing) // until it has had time to come again
		}
		if !again { // it may be a late copy of an older one, which does not come again
			return acts
		}
		acts = append(acts, Action{Kind: Note, ID: s.op.ID, Event: RequestTakenAsAck, Header: h})
		return p.acked(now, acts)
	}
	// It is in the send that it was in before it seemed to clear ours: that was a
	// duplicate, and what we sent has gone unread.
	acts = append(acts, Action{Kind: Note, ID: s.op.ID, Event: ClearWasDuplicate, Header: h})
	s.state, s.since, s.tries = WaitClear, now, 0
	s.deadline = in(now, p.cfg.Timing.ClearDeadline)
	p.armSend(now, p.cfg.Timing.Clear)
	return acts
}

// requestBeforeClear reports whether the peer had asked to send before it cleared
// our message, and was not answered.
func (p *Pair) requestBeforeClear() bool {
	q := &p.deferred
	return q.valid && q.header.Type == protocol.SendRequest && p.cfg.Peer.OneAtATime && q.at < p.send.phases.Clear
}

// acked ends the send with success.
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
		p.last.known = true // its last send had ended before it was in the receive that ours was for
	}
	if p.cfg.Quirks.OneDeferredHeader {
		p.deferred = deferredHeader{}
	}
	return p.endSend(now, nil, acts)
}

// endSend frees the sender's half, and lets a request that waited for it go on.
func (p *Pair) endSend(now Instant, err error, acts []Action) []Action {
	s := p.send
	p.send = sending{}
	if p.next != nil {
		p.renewSend()
	}
	if _, refused := errors.AsType[*RemoteError](err); err != nil && s.requested > 0 && !(refused && p.numbered()) { // it has no request
		acts = p.leaveRequest(&s, acts)
	}
	acts = append(acts, Action{Kind: SendDone, ID: s.op.ID, Words: s.op.Words, Err: err, Phases: s.phases})
	if p.recv.state == WaitRequest {
		acts = p.answerDeferred(now, acts)
	}
	return acts
}

// CancelSend cancels a send. It reports false if DATA is already being sent: then the
// message goes on, its outcome comes as SendDone, and the caller must keep the payload
// until then.
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

// UnansweredClear returns the CLEAR_TO_SEND of a deployed peer that no DATA has answered,
// and since when: unless it is a late duplicate, the peer is blocked in a receive
// from us.
func (p *Pair) UnansweredClear() (h protocol.Header, since Instant, ok bool) {
	return p.unanswered.header, p.unanswered.at, p.unanswered.valid
}

// SendWait describes what the message being sent waits for.
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

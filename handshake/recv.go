package handshake

import "github.com/zrlmpi/zrlmpid/protocol"

// RecvOp is a posted receive.
type RecvOp struct {
	ID ID
	// Words is the capacity of the buffer in words.
	Words uint32
	// Datatype must equal the datatype of the sender's message, unless Any is set.
	Datatype protocol.Datatype
	Any      bool
	// Tag must equal the tag of the sender's message if the profile has tags, unless AnyTag is set.
	Tag    uint8
	AnyTag bool
}

// receiving is the state of the receiving half of a Pair.
type receiving struct {
	state      State
	op         RecvOp
	stateSince Instant
	// rto retransmits CLEAR_TO_SEND, and timeouts counts its expirations. When deadline expires, the message fails, unless
	// it is complete and heldBack is set.
	rto      timer
	deadline timer
	timeouts int
	phases   Phases

	call          protocol.Call // the sender's call, once known
	tag           uint8
	detached      bool    // DetachRecv was called, because the caller is gone
	requestNumber uint32  // number of the sender's SEND_REQUEST; used with NumbersRequests
	earlyRequest  timer   // runs while a SEND_REQUEST may have crossed with CLEAR_TO_SEND or DATA
	size          uint32  // size of the message in progress, in words
	sum           uint32  // checksum of the payload in its first datagram
	bytesReceived int64   // payload bytes received
	lastPayloadAt Instant // when the last of them was received
	firstBytes    int64   // payload bytes in its first datagram
	// started is set once the first datagram of a message was received. It remains set if the message has to be
	// received anew. The field fingerprint identifies the message.
	started     bool
	fingerprint fingerprint
	// holdTimer is set if the message being received may be a copy of an earlier one. heldBack is set if the message is
	// complete but is not delivered until holdTimer expires.
	holdTimer timer
	heldBack  bool
	// answerTime is the time from CLEAR_TO_SEND to the message, or 0 if CLEAR_TO_SEND was sent twice. If another
	// message has replaced a held-back one, replacedMessage and replacedTime are the fingerprint and the answerTime of
	// the held-back one.
	answerTime      Instant
	replacedMessage fingerprint
	replacedTime    Instant
	// confirmed is set if DATA or a second SEND_REQUEST has shown that the peer is blocked in the send of this message.
	confirmed     bool
	peerRestarted bool // the peer was restarted since, as in sending
	resumed       bool // an earlier process cleared the message
}

// isActive reports whether the receive has sent CLEAR_TO_SEND and is waiting for DATA.
func (r *receiving) isActive() bool { return r.state == WaitData || r.state == Receiving }

// remaining returns the number of payload bytes that have not been received yet, without padding.
func (r *receiving) remaining() int64 { return int64(r.size)*protocol.WordLen - r.bytesReceived }

// Recv posts a receive. The error is ErrBusy if a receive is already posted, or a *DeadEndError.
func (p *Pair) Recv(now Instant, op RecvOp, acts []Action) ([]Action, error) {
	if p.recv.state != Idle {
		return acts, ErrBusy
	}
	if p.deadEnd.err != nil {
		return acts, p.deadEnd.err
	}
	p.recv = receiving{state: WaitRequest, op: op, stateSince: now, phases: Phases{Start: now}}
	return p.answerDeferred(now, acts), nil
}

// RecvIdle reports whether the Pair has no receive, so that Recv can post one.
func (p *Pair) RecvIdle() bool { return p.recv.state == Idle }

// answerDeferred answers the deferred SEND_REQUEST with CLEAR_TO_SEND if the posted receive matches it.
func (p *Pair) answerDeferred(now Instant, acts []Action) []Action {
	p.deferredMismatch = false
	if _, _, ok := p.Deferred(); !ok || p.send.state == WaitAck {
		return acts
	}
	if !p.matchesRecv(p.deferred.header) {
		p.deferredMismatch = true
		return acts
	}
	return p.accept(now, p.deferred.header, p.deferred.receivedAt, acts)
}

// matchesRecv reports whether a sender's packet matches the posted receive in its call and, in profile V09, in its tag.
func (p *Pair) matchesRecv(h protocol.Header) bool {
	op := &p.recv.op
	if p.cfg.Profile == protocol.V09 && !op.AnyTag && h.Tag != op.Tag {
		return false
	}
	return op.Any || p.cfg.Peer.IntCallsOnly || h.Call == op.Datatype.SendCall()
}

// accept begins to receive the message that the SEND_REQUEST in the given header announced. The SEND_REQUEST was
// received at the time at.
func (p *Pair) accept(now Instant, header protocol.Header, at Instant, acts []Action) []Action {
	recv := &p.recv
	recv.confirmed = p.wasRetransmitted(header)
	p.deferred = deferredHeader{}
	p.deferredMismatch = false
	p.discardBytes = 0
	p.dataRTT.addSample(p.lastReceived.answerTime)
	p.lastReceived.answersClear, p.lastReceived.answerTime = false, 0
	recv.call, recv.tag, recv.phases.Request = header.Call, header.Tag, at
	p.numbers.revokedClear = 0
	if p.usesNumbers() {
		recv.requestNumber = header.Size
	}
	recv.state, recv.stateSince, recv.timeouts = WaitData, now, 0
	recv.deadline = timerAfter(now, boundDeadline(p.cfg.Timing.DataDeadline, recv.detached))
	if s := &p.send; s.state == WaitClear {
		// Both sides have asked to send. The peer's message is transferred first. If the peer drops deferred
		// SEND_REQUESTs, ours is retransmitted afterwards.
		s.state, s.rto, s.deadline = Held, timer{}, timer{}
		acts = append(acts, Action{Kind: Note, ID: s.op.ID, Event: Crossed, Header: header})
	}
	if p.resuming {
		return p.resume(now, acts)
	}
	return p.sendClear(now, acts, false)
}

// sendClear sends CLEAR_TO_SEND.
func (p *Pair) sendClear(now Instant, acts []Action, retransmitted bool) []Action {
	recv := &p.recv
	recv.earlyRequest = timerAfter(now, p.cfg.Timing.FragmentGap)
	if !retransmitted {
		recv.phases.Clear = now
	} else if recv.heldBack { // the peer has not sent its DATA yet
		acts = p.startOver(now, acts)
	}
	p.armRecv(now)
	h := p.header(protocol.ClearToSend, recv.call.Counterpart(), recv.requestNumber, recv.tag)
	acts = append(acts, Action{Kind: Transmit, ID: recv.op.ID, Header: h})
	if retransmitted {
		recv.phases.Retransmissions++
		p.lossy = true
		acts = append(acts, Action{Kind: Note, ID: recv.op.ID, Event: Retransmitted, Header: h})
	}
	return acts
}

// armRecv sets the timeout for DATA.
func (p *Pair) armRecv(now Instant) {
	recv := &p.recv
	recv.rto = timer{}
	if p.cfg.Reliable || recv.resumed {
		return
	}
	if d, ok := p.cfg.Timing.Data.after(recv.timeouts); ok {
		recv.rto = timerAfter(now, d)
	}
}

// onRequest handles a SEND_REQUEST.
func (p *Pair) onRequest(now Instant, header protocol.Header, acts []Action) []Action {
	p.dropOffer()
	if q := &p.deferred; q.valid && q.header == header && p.mayBeRetransmit(q.receivedAt, now) {
		q.retransmitted = true
		p.exitDeadEnd() // a peer that asks anew is not in the middle of an earlier message
	}
	if p.mayBeInOurSend() && !p.wasRetransmitted(header) && now-p.inherited.saved.Out.StepTime < maxCopyDelay {
		return p.deferRequest(now, header, acts)
	}
	p.dropInherited(now) // the peer is not in a send that an earlier process cleared
	if p.send.state == WaitAck && p.cfg.Peer.BlockingCalls {
		acts = p.requestInWaitAck(now, header, acts)
	}
	recv := &p.recv
	if p.usesNumbers() && recv.isActive() && header.Size != recv.requestNumber {
		return p.onOtherRequest(now, header, acts)
	}
	switch recv.state {
	case WaitRequest:
		if !p.matchesRecv(header) {
			p.deferHeader(now, header)
			p.deferredMismatch = true
			return append(acts, Action{Kind: Drop, Reason: ReasonDatatype, Header: header})
		}
		if p.send.state == WaitAck {
			p.deferHeader(now, header) // answered when our own message is done
			return acts
		}
		return p.accept(now, header, now, acts)
	case WaitData, Receiving:
		// The peer asks again for the same message: our CLEAR_TO_SEND was lost, or still in flight when the peer's
		// timeout expired.
		acts = append(acts, Action{Kind: Note, ID: recv.op.ID, Event: RequestRetransmitted, Header: header})
		if p.cfg.Quirks.OneDeferredHeader {
			p.deferHeader(now, header) // our own timeout retransmits CLEAR_TO_SEND
			return acts
		}
		recv.confirmed = recv.confirmed || p.mayBeRetransmit(recv.phases.Request, now)
		if recv.earlyRequest.armed {
			return acts
		}
		if recv.state == Receiving {
			acts = p.startOver(now, acts)
		}
		recv.call, recv.tag = header.Call, header.Tag
		again := !recv.resumed
		recv.resumed = false
		return p.sendClear(now, acts, again)
	}
	return p.deferRequest(now, header, acts)
}

// deferRequest defers a SEND_REQUEST that cannot be answered yet.
func (p *Pair) deferRequest(now Instant, h protocol.Header, acts []Action) []Action {
	if p.deferred.valid && p.deferred.header == h {
		return append(acts, Action{Kind: Note, Event: RequestRetransmitted, Header: h})
	}
	p.deferHeader(now, h)
	return acts
}

// wasRetransmitted reports whether h equals the deferred SEND_REQUEST and the sender is known to have retransmitted it,
// because it came again at the sender's interval.
func (p *Pair) wasRetransmitted(h protocol.Header) bool {
	return p.deferred.valid && p.deferred.header == h && p.deferred.retransmitted
}

// onData handles a DATA header and the payload in its datagram.
func (p *Pair) onData(now Instant, header protocol.Header, payload []byte, streamed bool, acts []Action) []Action {
	drop := func(reason Reason) []Action {
		return append(acts, Action{Kind: Drop, Reason: reason, Header: header})
	}
	total := int64(header.Size) * protocol.WordLen
	n := int64(len(payload))
	switch {
	case header.Size > p.cfg.MaxWords:
		return drop(ReasonSize)
	case !streamed && !p.lengthFits(0, total, payload):
		return drop(ReasonLength)
	}
	recv := &p.recv
	if !recv.isActive() {
		return p.unsolicitedData(now, header, payload, total-n, streamed, acts)
	}
	other := header.Call != recv.call || p.cfg.Profile == protocol.V09 && header.Tag != recv.tag
	if other && !p.matchesRecv(header) {
		return drop(ReasonDatatype)
	}
	f := fingerprint{call: header.Call, size: header.Size, sum: checksum(payload)}
	switch differs := recv.started && recv.fingerprint != f; {
	case recv.heldBack && differs && p.recent.contains(f) && !p.recent.contains(recv.fingerprint):
		return drop(ReasonDuplicate) // of the two messages, this one is the copy
	case (differs || recv.started && now-recv.lastPayloadAt < p.ackLost()) && !streamed && p.detectsDuplicates():
		p.needlessHolds = 0
		if !recv.holdTimer.armed {
			acts = append(acts, Action{Kind: Note, ID: recv.op.ID, Event: SecondData, Header: header})
		}
	}
	if recv.state == Receiving || recv.heldBack {
		acts = p.startOver(now, acts)
	}
	if n == 0 {
		acts = p.noteWedge(header, errWedgeEmpty, acts)
	}
	recv.state, recv.stateSince, recv.confirmed = Receiving, now, true
	recv.call, recv.tag, recv.size, recv.bytesReceived = header.Call, header.Tag, header.Size, 0
	recv.sum, recv.fingerprint, recv.firstBytes, recv.started, recv.answerTime = f.sum, f, n, true, 0
	if recv.phases.Retransmissions == 0 {
		recv.answerTime = now - recv.phases.Clear
	}
	if recv.holdTimer = p.suspectData(now, f); recv.holdTimer.armed && now-recv.phases.Clear < p.dataRTT.shortest {
		acts = append(acts, Action{Kind: Note, ID: recv.op.ID, Event: EarlyData, Header: header})
	}
	return p.storePayload(now, payload, acts)
}

// Payload handles payload that arrives without a header: a continuation datagram, or a piece of a stream.
func (p *Pair) Payload(now Instant, b []byte, acts []Action) []Action {
	recv := &p.recv
	if p.cfg.Reliable {
		p.counts.countPayload(0, len(b)) // its header was counted
	} else {
		p.counts.countPayload(1, len(b))
	}
	if recv.state != Receiving {
		reason := ReasonUnexpectedPayload
		if p.discardBytes > 0 {
			p.discardBytes -= int64(len(b))
			reason = ReasonDuplicate
		}
		return append(acts, Action{Kind: Drop, Reason: reason})
	}
	if !p.cfg.Reliable {
		if now-recv.lastPayloadAt > p.cfg.Timing.FragmentGap {
			acts = append(acts, Action{Kind: Drop, Reason: ReasonGap})
			return p.startOver(now, acts)
		}
		if !p.lengthFits(recv.bytesReceived, int64(recv.size)*protocol.WordLen, b) {
			reason := ReasonLength
			if p.cfg.Shape.ImpliesGap(recv.remaining(), int64(len(b))) {
				reason = ReasonGap
			}
			acts = append(acts, Action{Kind: Drop, Reason: reason})
			acts = p.noteWedge(protocol.Header{}, errWedgeLength, acts)
			return p.startOver(now, acts)
		}
	}
	return p.storePayload(now, b, acts)
}

// Datagrams handles several datagrams at once. b consists of datagrams of size bytes each. Datagrams handles the full
// datagrams at the beginning of b that belong to the middle of the current message, and returns their total length. The
// caller passes the next datagram to Datagram.
func (p *Pair) Datagrams(now Instant, b []byte, size int, acts []Action) (int, []Action) {
	r := &p.recv
	if r.state != Receiving || r.bytesReceived == 0 || size != p.cfg.Shape.MaxDatagram ||
		now-r.lastPayloadAt > p.cfg.Timing.FragmentGap {
		return 0, acts
	}
	most := min(int64(len(b)), r.remaining()-1) // the last datagram may be padded, and ends the message
	n := 0
	for ; int64(n+size) <= most; n += size {
		if protocol.BeginsWithMark(b[n:]) { // it may be a packet
			break
		}
	}
	if n > 0 {
		p.counts.countPayload(n/size, n)
		acts = p.storePayload(now, b[:n], acts)
	}
	return n, acts
}

// storePayload stores a part of a message's payload. If b contains the last byte of the message, storePayload completes
// the message.
func (p *Pair) storePayload(now Instant, b []byte, acts []Action) []Action {
	recv := &p.recv
	if n := recv.remaining(); int64(len(b)) > n {
		acts = append(acts, Action{Kind: Note, ID: recv.op.ID, Event: Padding})
		b = b[:n]
	}
	if room := int64(recv.op.Words)*protocol.WordLen - recv.bytesReceived; room > 0 && len(b) > 0 {
		acts = append(acts, Action{Kind: Copy, ID: recv.op.ID, Offset: recv.bytesReceived,
			Payload: b[:min(room, int64(len(b)))]})
	}
	recv.bytesReceived += int64(len(b))
	recv.lastPayloadAt, recv.earlyRequest = now, timerAfter(now, p.cfg.Timing.FragmentGap)
	if recv.remaining() > 0 {
		p.armRecv(now)
		recv.deadline = timerAfter(now, boundDeadline(p.cfg.Timing.DataDeadline, recv.detached))
		return acts
	}
	recv.phases.Data = now
	if recv.holdTimer.armed {
		recv.state, recv.stateSince, recv.heldBack = WaitData, now, true
		recv.rto = timer{} // the peer retransmits, if it has more to send
		return acts
	}
	return p.completeRecv(now, acts)
}

// completeRecv acknowledges the received message and ends its receive.
func (p *Pair) completeRecv(now Instant, acts []Action) []Action {
	recv := &p.recv
	recv.phases.Ack = now
	h := p.header(protocol.Ack, recv.call.Counterpart(), 0, recv.tag)
	acts = append(acts, Action{Kind: Transmit, ID: recv.op.ID, Header: h})
	f := recv.fingerprint
	if f == recv.replacedMessage {
		recv.answerTime = recv.replacedTime // it was real, and was retransmitted
	}
	p.lastReceived = receivedMessage{
		valid: true, call: recv.call, size: recv.size, sum: recv.sum, ackedAt: now, earlyData: timerAfter(now, p.ackLost()),
		answersClear: true, fragmented: recv.firstBytes < int64(recv.size)*protocol.WordLen, answerTime: recv.answerTime,
	}
	if p.detectsDuplicates() {
		if p.lastReceived.equalsRecent = p.recent.contains(f); p.lastReceived.equalsRecent {
			data := protocol.Header{Dst: p.cfg.Local, Src: p.cfg.Remote, Size: recv.size, Call: recv.call,
				Type: protocol.Data, Tag: recv.tag}
			acts = append(acts, Action{Kind: Note, ID: recv.op.ID, Event: RepeatedContent, Header: data})
		}
		p.recent.add(f)
	}
	if p.cfg.Quirks.OneDeferredHeader {
		p.deferred = deferredHeader{}
	}
	var err error
	if recv.size > recv.op.Words {
		err = &TruncatedError{Remote: p.cfg.Remote, Posted: recv.op.Words, Sent: recv.size}
	}
	return p.endRecv(now, err, acts)
}

// startOver discards the received part of the message. The sender retransmits either the whole message or nothing.
func (p *Pair) startOver(now Instant, acts []Action) []Action {
	recv := &p.recv
	if recv.heldBack {
		recv.replacedMessage, recv.replacedTime = recv.fingerprint, recv.answerTime
	}
	recv.state, recv.stateSince, recv.bytesReceived, recv.size = WaitData, now, 0, 0
	recv.holdTimer, recv.heldBack = timer{}, false
	return append(acts, Action{Kind: Note, ID: recv.op.ID, Event: StartedOver})
}

// tickRecv handles the timers of the receiving half.
func (p *Pair) tickRecv(now Instant, acts []Action) []Action {
	recv := &p.recv
	if recv.holdTimer.isDue(now) || recv.heldBack && recv.deadline.isDue(now) {
		recv.holdTimer = timer{}
		if recv.heldBack { // no other DATA was received
			return p.completeRecv(now, acts)
		}
	}
	if recv.deadline.isDue(now) {
		if recv.resumed {
			return p.endInterrupted(now, acts)
		}
		return p.onDataOverdue(now, acts)
	}
	if !recv.rto.isDue(now) {
		return acts
	}
	if p.cfg.Quirks.OneDeferredHeader && p.send.state == WaitAck {
		// This stand-in is sending as well. A second CLEAR_TO_SEND would signal to the peer that it is not in a send, as if
		// an FPGA had sent it.
		p.armRecv(now)
		return acts
	}
	recv.timeouts++
	if recv.state == Receiving {
		acts = p.noteWedge(protocol.Header{}, errWedgeBrokenOff, acts)
		acts = p.startOver(now, acts)
		if p.cfg.Peer.RetransmitsClear > 0 {
			// The peer retransmits DATA by itself, and would keep another CLEAR_TO_SEND for its next send.
			p.armRecv(now)
			return acts
		}
	}
	return p.sendClear(now, acts, true)
}

// endRecv ends the receive with the error err, or successfully if err is nil. The Pair is then ready for another
// receive, and resumes a send that was held back.
func (p *Pair) endRecv(now Instant, err error, acts []Action) []Action {
	recv := p.recv
	p.freeRecv()
	if err == nil && recv.resumed {
		p.dropInherited(now)
	}
	acts = append(acts, Action{
		Kind: RecvDone, ID: recv.op.ID, Words: recv.size, Err: err, Phases: recv.phases,
		Header: p.header(protocol.Data, recv.call, recv.size, recv.tag),
	})
	if err == nil && p.send.state == Held {
		// The peer was in a send all the time, so a CLEAR_TO_SEND that it seemed to send meanwhile was a duplicate.
		p.staleClear = deferredHeader{}
	}
	return p.resumeSend(now, acts)
}

// resumeSend resumes a send that was held back because a receive was in progress.
func (p *Pair) resumeSend(now Instant, acts []Action) []Action {
	send := &p.send
	if send.state != Held || p.deadEnd.err != nil {
		return acts
	}
	if send.detached {
		send.state = WaitClear
		return acts
	}
	if send.requestsSent == 0 || p.cfg.Peer.DropsRequests {
		return p.startSend(now, acts)
	}
	// The peer has deferred our SEND_REQUEST, or dropped it as a duplicate.
	send.state, send.stateSince, send.timeouts = WaitClear, now, 0
	send.deadline = timerAfter(now, p.cfg.Timing.ClearDeadline)
	p.armSend(now, p.cfg.Timing.Clear)
	return p.useStale(now, acts)
}

// freeRecv makes the receiving half idle.
func (p *Pair) freeRecv() {
	p.recv = receiving{}
	if p.newSettings != nil {
		p.applyRecvSettings()
	}
}

// CancelRecv cancels a posted receive. It returns false if the sender was already cleared; the message will then
// arrive, and the caller must provide a buffer for it until RecvDone.
func (p *Pair) CancelRecv(id ID) bool {
	if p.recv.state != WaitRequest || p.recv.op.ID != id {
		return false
	}
	p.recv = receiving{}
	p.deferredMismatch = false
	return true
}

// ExpectedPayload returns the offset of the next payload byte of the message being received, and the number of
// outstanding bytes, without padding. ok is false if no message is being received.
func (p *Pair) ExpectedPayload() (offset, left int64, ok bool) {
	if p.recv.state != Receiving {
		return 0, 0, false
	}
	return p.recv.bytesReceived, p.recv.remaining(), true
}

// RecvWait describes what the posted receive is waiting for. It returns false if no receive is posted.
func (p *Pair) RecvWait() (Wait, bool) {
	recv := &p.recv
	if recv.state == Idle {
		return Wait{}, false
	}
	wait := Wait{
		ID: recv.op.ID, State: recv.state, Local: p.cfg.Local, Remote: p.cfg.Remote,
		For: recv.state.AwaitedPacket(), Since: recv.stateSince, Retransmissions: recv.phases.Retransmissions,
		Words: recv.size, Got: recv.bytesReceived,
	}
	if p.deferredMismatch && p.deferred.valid {
		wait.Deferred, wait.HasDeferred = p.deferred.header.Call, true
	}
	return wait, true
}

// Deferred returns the SEND_REQUEST that no receive has answered yet, and the time at which it was received. If the
// peer's calls block, the peer is blocked in a send to this rank.
func (p *Pair) Deferred() (h protocol.Header, since Instant, ok bool) {
	if !p.deferred.valid || p.deferred.header.Type != protocol.SendRequest || p.requestInDoubt() {
		return protocol.Header{}, 0, false
	}
	return p.deferred.header, p.deferred.receivedAt, true
}

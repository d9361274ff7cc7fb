package handshake

import "github.com/zrlmpi/zrlmpid/protocol"

// RecvOp is a posted receive.
type RecvOp struct {
	ID ID
	// Words is the capacity of the buffer in words.
	Words uint32
	// Datatype must match the sender's, unless Any is set.
	Datatype protocol.Datatype
	Any      bool
	// Tag must match the sender's in a profile with tags, unless AnyTag is set.
	Tag    uint8
	AnyTag bool
}

// receiving is the state of the receiver's half of a pair.
type receiving struct {
	state    State
	op       RecvOp
	since    Instant
	rto      timer
	deadline timer
	tries    int
	phases   Phases

	call    protocol.Call // of the sender, once known
	tag     uint8
	gone    bool    // its caller is gone, and LeaveRecv was called
	number  uint32  // of the sender's SEND_REQUEST, if the peer is Numbered
	early   timer   // runs while SEND_REQUEST may have been sent before CLEAR_TO_SEND or DATA arrived
	size    uint32  // size of the message in progress, in words
	sum     uint32  // checksum of the payload in its first datagram
	off     int64   // payload bytes received
	arrived Instant // when the last of them was received
	first   int64   // payload bytes in its first datagram
	// begun: its first datagram, of message seen, was received, even if the message was started over.
	begun bool
	seen  fingerprint
	// doubt runs while the message being received may be a copy of an earlier one; held: it is complete, and waits
	// until doubt expires.
	doubt timer
	held  bool
	// answered is the time between CLEAR_TO_SEND and the message, 0 if CLEAR_TO_SEND was sent twice. doubted and
	// doubtedAnswer are seen and answered of a message that was held back and replaced.
	answered      Instant
	doubted       fingerprint
	doubtedAnswer Instant
	// certain: the peer is in this send, because DATA or a second SEND_REQUEST was received.
	certain    bool
	resetSince bool // as in sending
	resumed    bool // an earlier process cleared the message
}

// active reports whether the sender was cleared and DATA is outstanding.
func (r *receiving) active() bool { return r.state == WaitData || r.state == Receiving }

// left returns the number of outstanding payload bytes, without padding.
func (r *receiving) left() int64 { return int64(r.size)*protocol.WordLen - r.off }

// Recv posts a receive. The error is ErrBusy if there already is one, or a *DeadEndError.
func (p *Pair) Recv(now Instant, op RecvOp, acts []Action) ([]Action, error) {
	if p.recv.state != Idle {
		return acts, ErrBusy
	}
	if p.dead.err != nil {
		return acts, p.dead.err
	}
	p.recv = receiving{state: WaitRequest, op: op, since: now, phases: Phases{Start: now}}
	return p.answerDeferred(now, acts), nil
}

// RecvIdle reports whether the pair has no receive, so that Recv does not return ErrBusy.
func (p *Pair) RecvIdle() bool { return p.recv.state == Idle }

// answerDeferred clears the deferred SEND_REQUEST if the posted receive matches it.
func (p *Pair) answerDeferred(now Instant, acts []Action) []Action {
	p.unfit = false
	if _, _, ok := p.Deferred(); !ok || p.send.state == WaitAck {
		return acts
	}
	if !p.matchesRecv(p.deferred.header) {
		p.unfit = true
		return acts
	}
	return p.accept(now, p.deferred.header, p.deferred.at, acts)
}

// matchesRecv reports whether the call, and in V09 the tag, of a sender's packet match the posted receive.
func (p *Pair) matchesRecv(h protocol.Header) bool {
	op := &p.recv.op
	if p.cfg.Profile == protocol.V09 && !op.AnyTag && h.Tag != op.Tag {
		return false
	}
	return op.Any || p.cfg.Peer.OnlyInt || h.Call == op.Datatype.Send()
}

// accept begins the handshake of a message that a SEND_REQUEST announced.
func (p *Pair) accept(now Instant, h protocol.Header, at Instant, acts []Action) []Action {
	r := &p.recv
	r.certain = p.asked(h)
	p.deferred = deferredHeader{}
	p.unfit = false
	p.drain = 0
	p.answer.learn(p.last.answered)
	p.last.latest, p.last.answered = false, 0
	r.call, r.tag, r.phases.Request = h.Call, h.Tag, at
	p.numbers.revoked = 0
	if p.numbered() {
		r.number = h.Size
	}
	r.state, r.since, r.tries = WaitData, now, 0
	r.deadline = in(now, bound(p.cfg.Timing.DataDeadline, r.gone))
	if s := &p.send; s.state == WaitClear {
		// Both sides have asked to send. The peer's message goes first; SEND_REQUEST for ours is retransmitted when it
		// is done, if the peer drops it.
		s.state, s.rto, s.deadline = Held, timer{}, timer{}
		acts = append(acts, Action{Kind: Note, ID: s.op.ID, Event: Crossed, Header: h})
	}
	if p.resumes {
		return p.resume(now, acts)
	}
	return p.clear(now, acts, false)
}

// clear sends CLEAR_TO_SEND.
func (p *Pair) clear(now Instant, acts []Action, retransmitted bool) []Action {
	r := &p.recv
	r.early = in(now, p.cfg.Timing.FragmentGap)
	if !retransmitted {
		r.phases.Clear = now
	} else if r.held { // the peer has not sent its DATA yet
		acts = p.startOver(now, acts)
	}
	p.armRecv(now)
	h := p.header(protocol.ClearToSend, r.call.Counterpart(), r.number, r.tag)
	acts = append(acts, Action{Kind: Transmit, ID: r.op.ID, Header: h})
	if retransmitted {
		r.phases.Retransmissions++
		p.lossy = true
		acts = append(acts, Action{Kind: Note, ID: r.op.ID, Event: Retransmitted, Header: h})
	}
	return acts
}

// armRecv sets the time-out of the wait for DATA.
func (p *Pair) armRecv(now Instant) {
	r := &p.recv
	r.rto = timer{}
	if p.cfg.Reliable || r.resumed {
		return
	}
	if d, ok := p.cfg.Timing.Data.after(r.tries); ok {
		r.rto = in(now, d)
	}
}

// onRequest handles a SEND_REQUEST.
func (p *Pair) onRequest(now Instant, h protocol.Header, acts []Action) []Action {
	p.forgetOffer()
	if q := &p.deferred; q.valid && q.header == h && p.asksAgain(q.at, now) {
		q.again = true
		p.leaveDeadEnd() // a peer that asks anew is not in the middle of an earlier message
	}
	if p.inOurSend() && !p.asked(h) && now-p.earlier.kept.Out.At < latestCopy {
		return p.keepRequest(now, h, acts)
	}
	p.endEarlier(now) // it is in no send that an earlier process cleared
	if p.send.state == WaitAck && p.cfg.Peer.OneAtATime {
		acts = p.requestInWaitAck(now, h, acts)
	}
	r := &p.recv
	if p.numbered() && r.active() && h.Size != r.number {
		return p.otherRequest(now, h, acts)
	}
	switch r.state {
	case WaitRequest:
		if !p.matchesRecv(h) {
			p.deferHeader(now, h)
			p.unfit = true
			return append(acts, Action{Kind: Drop, Reason: ReasonDatatype, Header: h})
		}
		if p.send.state == WaitAck {
			p.deferHeader(now, h) // answered when our own message is done
			return acts
		}
		return p.accept(now, h, now, acts)
	case WaitData, Receiving:
		// The peer asks again for the same message: our CLEAR_TO_SEND was lost, or was in flight when its time-out
		// expired.
		acts = append(acts, Action{Kind: Note, ID: r.op.ID, Event: RequestRetransmitted, Header: h})
		if p.cfg.Quirks.OneDeferredHeader {
			p.deferHeader(now, h) // our own time-out sends CLEAR_TO_SEND again
			return acts
		}
		r.certain = r.certain || p.asksAgain(r.phases.Request, now)
		if r.early.on {
			return acts
		}
		if r.state == Receiving {
			acts = p.startOver(now, acts)
		}
		r.call, r.tag = h.Call, h.Tag
		again := !r.resumed
		r.resumed = false
		return p.clear(now, acts, again)
	}
	return p.keepRequest(now, h, acts)
}

// keepRequest defers a SEND_REQUEST that cannot be answered yet.
func (p *Pair) keepRequest(now Instant, h protocol.Header, acts []Action) []Action {
	if p.deferred.valid && p.deferred.header == h {
		return append(acts, Action{Kind: Note, Event: RequestRetransmitted, Header: h})
	}
	p.deferHeader(now, h)
	return acts
}

// asked reports whether the deferred SEND_REQUEST is h and was retransmitted at its sender's spacing.
func (p *Pair) asked(h protocol.Header) bool {
	return p.deferred.valid && p.deferred.header == h && p.deferred.again
}

// onData handles a DATA header and the payload in its datagram.
func (p *Pair) onData(now Instant, h protocol.Header, payload []byte, streamed bool, acts []Action) []Action {
	drop := func(reason Reason) []Action {
		return append(acts, Action{Kind: Drop, Reason: reason, Header: h})
	}
	total := int64(h.Size) * protocol.WordLen
	n := int64(len(payload))
	switch {
	case h.Size > p.cfg.MaxWords:
		return drop(ReasonSize)
	case !streamed && !p.lengthFits(0, total, payload):
		return drop(ReasonLength)
	}
	r := &p.recv
	if !r.active() {
		return p.unsolicitedData(now, h, payload, total-n, streamed, acts)
	}
	other := h.Call != r.call || p.cfg.Profile == protocol.V09 && h.Tag != r.tag
	if other && !p.matchesRecv(h) {
		return drop(ReasonDatatype)
	}
	f := fingerprint{call: h.Call, size: h.Size, sum: checksum(payload)}
	switch differs := r.begun && r.seen != f; {
	case r.held && differs && p.recent.has(f) && !p.recent.has(r.seen):
		return drop(ReasonDuplicate) // one of the two is a copy: this one
	case (differs || r.begun && now-r.arrived < p.ackLost()) && !streamed && p.distrustsCopies():
		p.vainHolds = 0
		if !r.doubt.on {
			acts = append(acts, Action{Kind: Note, ID: r.op.ID, Event: SecondData, Header: h})
		}
	}
	if r.state == Receiving || r.held {
		acts = p.startOver(now, acts)
	}
	if n == 0 {
		acts = p.wedge(h, errWedgeEmpty, acts)
	}
	r.state, r.since, r.certain = Receiving, now, true
	r.call, r.tag, r.size, r.off = h.Call, h.Tag, h.Size, 0
	r.sum, r.seen, r.first, r.begun, r.answered = f.sum, f, n, true, 0
	if r.phases.Retransmissions == 0 {
		r.answered = now - r.phases.Clear
	}
	if r.doubt = p.suspectData(now, f); r.doubt.on && now-r.phases.Clear < p.answer.shortest {
		acts = append(acts, Action{Kind: Note, ID: r.op.ID, Event: EarlyData, Header: h})
	}
	return p.take(now, payload, acts)
}

// Payload handles payload without a header: a continuation datagram, or a piece of a stream.
func (p *Pair) Payload(now Instant, b []byte, acts []Action) []Action {
	r := &p.recv
	if p.cfg.Reliable {
		p.received.data(0, len(b)) // its header was counted
	} else {
		p.received.data(1, len(b))
	}
	if r.state != Receiving {
		reason := ReasonUnexpectedPayload
		if p.drain > 0 {
			p.drain -= int64(len(b))
			reason = ReasonDuplicate
		}
		return append(acts, Action{Kind: Drop, Reason: reason})
	}
	if !p.cfg.Reliable {
		if now-r.arrived > p.cfg.Timing.FragmentGap {
			acts = append(acts, Action{Kind: Drop, Reason: ReasonGap})
			return p.startOver(now, acts)
		}
		if !p.lengthFits(r.off, int64(r.size)*protocol.WordLen, b) {
			reason := ReasonLength
			if p.cfg.Shape.Skips(r.left(), int64(len(b))) {
				reason = ReasonGap
			}
			acts = append(acts, Action{Kind: Drop, Reason: reason})
			acts = p.wedge(protocol.Header{}, errWedgeLength, acts)
			return p.startOver(now, acts)
		}
	}
	return p.take(now, b, acts)
}

// Run receives at once as many as possible of the datagrams in b, each of size bytes: full ones from the middle of the
// message in progress. It returns the number of bytes received; pass the next datagram to Datagram.
func (p *Pair) Run(now Instant, b []byte, size int, acts []Action) (int, []Action) {
	r := &p.recv
	if r.state != Receiving || r.off == 0 || size != p.cfg.Shape.MaxDatagram ||
		now-r.arrived > p.cfg.Timing.FragmentGap {
		return 0, acts
	}
	most := min(int64(len(b)), r.left()-1) // the last one may be padded, and ends the message
	n := 0
	for ; int64(n+size) <= most; n += size {
		if protocol.BeginsWithMark(b[n:]) { // it may be a packet
			break
		}
	}
	if n > 0 {
		p.received.data(n/size, n)
		acts = p.take(now, b[:n], acts)
	}
	return n, acts
}

// take stores payload, and completes the message with its last byte.
func (p *Pair) take(now Instant, b []byte, acts []Action) []Action {
	r := &p.recv
	if n := r.left(); int64(len(b)) > n {
		acts = append(acts, Action{Kind: Note, ID: r.op.ID, Event: Padding})
		b = b[:n]
	}
	if room := int64(r.op.Words)*protocol.WordLen - r.off; room > 0 && len(b) > 0 {
		acts = append(acts, Action{Kind: Copy, ID: r.op.ID, Offset: r.off, Payload: b[:min(room, int64(len(b)))]})
	}
	r.off += int64(len(b))
	r.arrived, r.early = now, in(now, p.cfg.Timing.FragmentGap)
	if r.left() > 0 {
		p.armRecv(now)
		r.deadline = in(now, bound(p.cfg.Timing.DataDeadline, r.gone))
		return acts
	}
	r.phases.Data = now
	if r.doubt.on {
		r.state, r.since, r.held = WaitData, now, true
		r.rto = timer{} // the peer retransmits, if it has more to send
		return acts
	}
	return p.complete(now, acts)
}

// complete acknowledges the received message and ends its receive.
func (p *Pair) complete(now Instant, acts []Action) []Action {
	r := &p.recv
	r.phases.Ack = now
	h := p.header(protocol.Ack, r.call.Counterpart(), 0, r.tag)
	acts = append(acts, Action{Kind: Transmit, ID: r.op.ID, Header: h})
	f := r.seen
	if f == r.doubted {
		r.answered = r.doubtedAnswer // it was real, and was retransmitted since
	}
	p.last = finished{
		valid: true, call: r.call, size: r.size, sum: r.sum, acked: now, early: in(now, p.ackLost()),
		latest: true, fragmented: r.first < int64(r.size)*protocol.WordLen, answered: r.answered,
	}
	if p.distrustsCopies() {
		if p.last.twin = p.recent.has(f); p.last.twin {
			data := protocol.Header{Dst: p.cfg.Local, Src: p.cfg.Remote, Size: r.size, Call: r.call,
				Type: protocol.Data, Tag: r.tag}
			acts = append(acts, Action{Kind: Note, ID: r.op.ID, Event: RepeatedContent, Header: data})
		}
		p.recent.add(f)
	}
	if p.cfg.Quirks.OneDeferredHeader {
		p.deferred = deferredHeader{}
	}
	var err error
	if r.size > r.op.Words {
		err = &TruncatedError{Remote: p.cfg.Remote, Posted: r.op.Words, Sent: r.size}
	}
	return p.endRecv(now, err, acts)
}

// startOver discards the part of the message received so far. The sender retransmits either all of it or nothing.
func (p *Pair) startOver(now Instant, acts []Action) []Action {
	r := &p.recv
	if r.held {
		r.doubted, r.doubtedAnswer = r.seen, r.answered
	}
	r.state, r.since, r.off, r.size = WaitData, now, 0, 0
	r.doubt, r.held = timer{}, false
	return append(acts, Action{Kind: Note, ID: r.op.ID, Event: StartedOver})
}

// tickRecv handles the timers of the receiver's half.
func (p *Pair) tickRecv(now Instant, acts []Action) []Action {
	r := &p.recv
	if r.doubt.due(now) || r.held && r.deadline.due(now) {
		r.doubt = timer{}
		if r.held { // nothing else has come
			return p.complete(now, acts)
		}
	}
	if r.deadline.due(now) {
		if r.resumed {
			return p.brokenOff(now, acts)
		}
		return p.dataOverdue(now, acts)
	}
	if !r.rto.due(now) {
		return acts
	}
	if p.cfg.Quirks.OneDeferredHeader && p.send.state == WaitAck {
		// A stand-in that is sending as well. A second CLEAR_TO_SEND would show that it is in no send, as an FPGA's
		// does.
		p.armRecv(now)
		return acts
	}
	r.tries++
	if r.state == Receiving {
		acts = p.wedge(protocol.Header{}, errWedgeBrokenOff, acts)
		acts = p.startOver(now, acts)
		if p.cfg.Peer.RetransmitsClear > 0 {
			// The peer retransmits DATA by itself. It would keep a CLEAR_TO_SEND for its next send.
			p.armRecv(now)
			return acts
		}
	}
	return p.clear(now, acts, true)
}

// endRecv frees the receiver's half, and resumes a send that waited for it.
func (p *Pair) endRecv(now Instant, err error, acts []Action) []Action {
	r := p.recv
	p.freeRecv()
	if err == nil && r.resumed {
		p.endEarlier(now)
	}
	acts = append(acts, Action{
		Kind: RecvDone, ID: r.op.ID, Words: r.size, Err: err, Phases: r.phases,
		Header: p.header(protocol.Data, r.call, r.size, r.tag),
	})
	if err == nil && p.send.state == Held {
		// The peer was in a send. A CLEAR_TO_SEND in the meantime was a duplicate.
		p.stale = deferredHeader{}
	}
	return p.resumeSend(now, acts)
}

// resumeSend resumes a send that waited for the receiver's half.
func (p *Pair) resumeSend(now Instant, acts []Action) []Action {
	s := &p.send
	if s.state != Held || p.dead.err != nil {
		return acts
	}
	if s.gone {
		s.state = WaitClear
		return acts
	}
	if s.requested == 0 || p.cfg.Peer.DropsRequests {
		return p.request(now, acts)
	}
	// The peer has deferred our SEND_REQUEST, or dropped it as a duplicate.
	s.state, s.since, s.tries = WaitClear, now, 0
	s.deadline = in(now, p.cfg.Timing.ClearDeadline)
	p.armSend(now, p.cfg.Timing.Clear)
	return p.useStale(now, acts)
}

// freeRecv makes the receiver's half idle.
func (p *Pair) freeRecv() {
	p.recv = receiving{}
	if p.next != nil {
		p.renewRecv()
	}
}

// CancelRecv cancels a posted receive. It returns false if the sender was already cleared: then the message will
// arrive, and the caller must provide a buffer for it until RecvDone.
func (p *Pair) CancelRecv(id ID) bool {
	if p.recv.state != WaitRequest || p.recv.op.ID != id {
		return false
	}
	p.recv = receiving{}
	p.unfit = false
	return true
}

// Expects returns, while a message is being received, the offset of the next payload byte in the message and the number
// of outstanding bytes, without padding.
func (p *Pair) Expects() (offset, left int64, ok bool) {
	if p.recv.state != Receiving {
		return 0, 0, false
	}
	return p.recv.off, p.recv.left(), true
}

// RecvWait describes the wait of the posted receive, and returns false if there is no receive.
func (p *Pair) RecvWait() (Wait, bool) {
	r := &p.recv
	if r.state == Idle {
		return Wait{}, false
	}
	w := Wait{
		ID: r.op.ID, State: r.state, Local: p.cfg.Local, Remote: p.cfg.Remote,
		For: r.state.WaitsFor(), Since: r.since, Retransmissions: r.phases.Retransmissions, Words: r.size, Got: r.off,
	}
	if p.unfit && p.deferred.valid {
		w.Deferred, w.HasDeferred = p.deferred.header.Call, true
	}
	return w, true
}

// Deferred returns the SEND_REQUEST that no receive has answered, and when it was received: the peer is blocked in a
// send to us.
func (p *Pair) Deferred() (h protocol.Header, since Instant, ok bool) {
	if !p.deferred.valid || p.deferred.header.Type != protocol.SendRequest || p.requestInDoubt() {
		return protocol.Header{}, 0, false
	}
	return p.deferred.header, p.deferred.at, true
}

package handshake

import (
	"hash/crc32"
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// RecvOp is a posted receive.
type RecvOp struct {
	ID ID
	// Words is the capacity of the buffer.
	Words uint32
	// Datatype must match the sender's, unless Any.
	Datatype protocol.Datatype
	Any      bool
	// Tag must match the sender's where the profile carries one, unless
	// AnyTag.
	Tag    uint8
	AnyTag bool
}

// receiving is the receiver's half of a pair.
type receiving struct {
	state    State
	op       RecvOp
	since    Instant
	rto      timer
	deadline timer
	tries    int
	phases   Phases

	call    protocol.Call // the sender's, once it is known
	tag     uint8
	early   timer   // runs while SEND_REQUEST may have been sent before CLEAR_TO_SEND or DATA arrived
	size    uint32  // of the message under way, in words
	sum     uint32  // checksum of the payload in its first datagram
	off     int64   // payload bytes that have arrived
	arrived Instant // when the last of them did
}

// active reports whether the receiver's half takes part in a handshake, rather
// than wait for one to begin.
func (r *receiving) active() bool { return r.state == WaitData || r.state == Receiving }

// left returns the payload bytes still to come, padding not counted.
func (r *receiving) left() int64 { return int64(r.size)*protocol.WordLen - r.off }

// Recv posts a receive. The error is ErrBusy if there is one already.
func (p *Pair) Recv(now Instant, op RecvOp, acts []Action) ([]Action, error) {
	if p.recv.state != Idle {
		return acts, ErrBusy
	}
	p.recv = receiving{state: WaitRequest, op: op, since: now, phases: Phases{Start: now}}
	return p.answerDeferred(now, acts), nil
}

// RecvIdle reports whether Recv would be accepted.
func (p *Pair) RecvIdle() bool { return p.recv.state == Idle }

// answerDeferred clears a deferred SEND_REQUEST if the posted receive matches it.
func (p *Pair) answerDeferred(now Instant, acts []Action) []Action {
	p.unfit = false
	if !p.deferred.valid || p.deferred.header.Type != protocol.SendRequest || p.send.state == WaitAck {
		return acts
	}
	if !p.matchesRecv(p.deferred.header) {
		p.unfit = true
		return acts
	}
	return p.accept(now, p.deferred.header, p.deferred.at, acts)
}

// matchesRecv compares the call, and the tag where the profile has one, of a
// sender's packet with the posted receive.
func (p *Pair) matchesRecv(h protocol.Header) bool {
	op := &p.recv.op
	if p.cfg.Profile == protocol.V09 && !op.AnyTag && h.Tag != op.Tag {
		return false
	}
	return op.Any || p.cfg.Peer.OnlyInt || h.Call == op.Datatype.Send()
}

// accept begins the handshake of a message that a SEND_REQUEST has announced.
func (p *Pair) accept(now Instant, h protocol.Header, at Instant, acts []Action) []Action {
	r := &p.recv
	p.deferred = deferredHeader{}
	p.unfit = false
	p.drain = 0
	r.call, r.tag, r.phases.Request = h.Call, h.Tag, at
	r.state, r.since, r.tries = WaitData, now, 0
	r.deadline = in(now, p.cfg.Timing.DataDeadline)
	if s := &p.send; s.state == WaitClear {
		// Both sides have asked. The peer's message goes first; ours is
		// requestedAt for again when it is done.
		s.state, s.rto, s.deadline = Held, timer{}, timer{}
		acts = append(acts, Action{Kind: Note, ID: s.op.ID, Event: Crossed, Header: h})
	}
	return p.clear(now, acts, false)
}

// clear sends CLEAR_TO_SEND.
func (p *Pair) clear(now Instant, acts []Action, retransmitted bool) []Action {
	r := &p.recv
	r.early = in(now, p.cfg.Timing.FragmentGap)
	if !retransmitted {
		r.phases.Clear = now
	}
	p.armRecv(now)
	h := p.header(protocol.ClearToSend, r.call.Counterpart(), 0, r.tag)
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
	if p.cfg.Reliable {
		return
	}
	if d, ok := p.cfg.Timing.Data.after(r.tries); ok {
		r.rto = in(now, d)
	}
}

// onRequest takes a SEND_REQUEST.
func (p *Pair) onRequest(now Instant, h protocol.Header, acts []Action) []Action {
	if p.send.state == WaitAck && p.cfg.Peer.OneAtATime {
		acts = p.requestInWaitAck(now, h, acts)
	}
	// A peer that asks anew is not in the middle of an earlier message.
	p.partial = nil
	r := &p.recv
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
		// The same message, asked for again: our CLEAR_TO_SEND was lost,
		// or was still under way when the peer's time-out expired.
		acts = append(acts, Action{Kind: Note, ID: r.op.ID, Event: RequestRetransmitted, Header: h})
		if p.cfg.Quirks.OneDeferredHeader {
			p.deferHeader(now, h) // and its own time-out is what clears again
			return acts
		}
		if r.early.on {
			return acts
		}
		if r.state == Receiving {
			acts = p.startOver(now, acts)
		}
		r.call, r.tag = h.Call, h.Tag
		return p.clear(now, acts, true)
	}
	if p.deferred.valid && p.deferred.header == h {
		acts = append(acts, Action{Kind: Note, Event: RequestRetransmitted, Header: h})
		p.deferred.at = min(p.deferred.at, now)
		return acts
	}
	p.deferHeader(now, h)
	return acts
}

// onData takes a DATA header and the payload in its datagram.
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
	if r.state == Receiving {
		acts = p.startOver(now, acts)
	}
	if n == 0 {
		acts = p.wedge(h, errWedgeEmpty, acts)
	}
	r.state, r.since = Receiving, now
	r.call, r.tag, r.size, r.off = h.Call, h.Tag, h.Size, 0
	r.sum = checksum(payload)
	return p.take(now, payload, acts)
}

// Payload takes payload without a header: a datagram without a header, or a piece of a
// stream.
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
			acts = append(acts, Action{Kind: Drop, Reason: ReasonLength})
			acts = p.wedge(protocol.Header{}, errWedgeLength, acts)
			return p.startOver(now, acts)
		}
	}
	return p.take(now, b, acts)
}

// Run takes as many as it can at once of the datagrams that lie in b, one behind
// the other, each of size bytes: full ones from the middle of the message that is
// arriving. It returns how many bytes it has taken; Datagram is for the next one.
func (p *Pair) Run(now Instant, b []byte, size int, acts []Action) (int, []Action) {
	r := &p.recv
	if r.state != Receiving || r.off == 0 || size != p.cfg.Shape.MaxDatagram || now-r.arrived > p.cfg.Timing.FragmentGap {
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

// take stores payload, and ends the message with its last byte.
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
		r.deadline = in(now, p.cfg.Timing.DataDeadline)
		return acts
	}
	r.phases.Data, r.phases.Ack = now, now
	h := p.header(protocol.Ack, r.call.Counterpart(), 0, r.tag)
	acts = append(acts, Action{Kind: Transmit, ID: r.op.ID, Header: h})
	twin := p.last.valid && p.last.call == r.call && p.last.size == r.size && p.last.sum == r.sum
	p.last = finished{valid: true, call: r.call, size: r.size, sum: r.sum, acked: now, early: in(now, p.ackLost()), twin: twin}
	if p.cfg.Quirks.OneDeferredHeader {
		p.deferred = deferredHeader{}
	}
	var err error
	if r.size > r.op.Words {
		err = &TruncatedError{Remote: p.cfg.Remote, Posted: r.op.Words, Sent: r.size}
	}
	return p.endRecv(now, err, acts)
}

// startOver forgets what has arrived of the message. The sender retransmits all of
// it or nothing.
func (p *Pair) startOver(now Instant, acts []Action) []Action {
	r := &p.recv
	r.state, r.since, r.off, r.size = WaitData, now, 0, 0
	return append(acts, Action{Kind: Note, ID: r.op.ID, Event: StartedOver})
}

// unsolicitedData takes DATA that no CLEAR_TO_SEND of ours waits for. rest is how
// many bytes of the message follow.
func (p *Pair) unsolicitedData(now Instant, h protocol.Header, payload []byte, rest int64, streamed bool, acts []Action) []Action {
	same := p.last.valid && p.last.call == h.Call && p.last.size == h.Size &&
		(streamed || p.last.sum == checksum(payload))
	if streamed || rest > 0 {
		p.drain, p.drainEnd = rest, now+p.cfg.Timing.FragmentGap
	}
	if !same || p.deferred.valid && p.deferred.header.Type == protocol.SendRequest {
		if p.last.twin && !p.deferred.valid && now-p.last.acked < unmasked {
			// The message that we took for the last one was a copy of
			// the one before, made by the network; this is it.
			acts = append(acts, Action{Kind: Note, Event: DeliveredDuplicate, Header: h})
			p.last.twin = false
		}
		// Or the peer has asked to send since, and this is the new
		// message, sent on the strength of a stale CLEAR_TO_SEND.
		return append(acts, Action{Kind: Drop, Reason: ReasonUnsolicited, Header: h})
	}
	acts = append(acts, Action{Kind: Drop, Reason: ReasonDuplicate, Header: h})
	if p.cfg.Quirks.AckOnce || p.last.early.on {
		return acts
	}
	p.last.acked, p.last.early = now, in(now, p.ackLost())
	p.last.reacked++
	p.lossy = true
	ack := p.header(protocol.Ack, h.Call.Counterpart(), 0, h.Tag)
	return append(acts,
		Action{Kind: Transmit, Header: ack},
		Action{Kind: Note, Event: Reacked, Header: ack})
}

// unmasked is how long after a message the DATA that should have been it is
// still expected: within a sender's first time-out.
const unmasked = 100 * time.Millisecond

// ackLost returns the time after which a retransmitted DATA shows that our ACK was
// lost. A tenth is allowed for clocks and for the way of the ACK.
func (p *Pair) ackLost() Instant {
	if p.cfg.Reliable {
		return 0
	}
	return p.cfg.Peer.AckRetransmit * 9 / 10
}

// isRetransmission reports whether a DATA datagram in the middle of a message is that
// message again, rather than payload that resembles a header: then it carries
// the same bytes as the first one did.
func (p *Pair) isRetransmission(h protocol.Header, payload []byte) bool {
	return h.Size == p.recv.size && h.Call == p.recv.call && checksum(payload) == p.recv.sum
}

// lengthFits reports whether a datagram may carry the payload b at offset off of
// a message of total bytes. All but the last are full, which includes the first
// part of a long one that the FPGA's shell has split. The last carries the rest,
// and may be padded with zeros: a full one that was delivered twice is not
// mistaken for a padded last one. A message of 0 words may carry a line of
// anything: the FPGA's wrapper sends the first words of the caller's buffer.
func (p *Pair) lengthFits(off, total int64, b []byte) bool {
	full := int64(p.cfg.Shape.MaxDatagram)
	if off == 0 {
		full -= protocol.HeaderLen
	}
	n, left := int64(len(b)), total-off
	if n < left || n > full+protocol.LineLen {
		return n == full && n < left
	}
	if total == 0 {
		return n <= protocol.LineLen
	}
	return n-left <= protocol.LineLen-protocol.WordLen && !slices.ContainsFunc(b[left:], func(c byte) bool { return c != 0 })
}

// tickRecv acts on the receiver's times.
func (p *Pair) tickRecv(now Instant, acts []Action) []Action {
	r := &p.recv
	if r.deadline.due(now) {
		w, _ := p.RecvWait()
		return p.endRecv(now, &TimeoutError{Wait: w, Elapsed: now - r.phases.Clear}, acts)
	}
	if !r.rto.due(now) {
		return acts
	}
	if p.cfg.Quirks.OneDeferredHeader && p.send.state == WaitAck {
		// A stand-in that sends as well. A second CLEAR_TO_SEND would say that it is
		// in no send, as an FPGA's does.
		p.armRecv(now)
		return acts
	}
	r.tries++
	if r.state == Receiving {
		acts = p.wedge(protocol.Header{}, errWedgeBrokenOff, acts)
		acts = p.startOver(now, acts)
		if p.cfg.Peer.RetransmitsClear > 0 {
			// It sends DATA again by itself. A CLEAR_TO_SEND now would be
			// kept for its next send.
			p.armRecv(now)
			return acts
		}
	}
	return p.clear(now, acts, true)
}

// endRecv frees the receiver's half, and lets a send that waited for it go on.
func (p *Pair) endRecv(now Instant, err error, acts []Action) []Action {
	r := p.recv
	p.freeRecv()
	acts = append(acts, Action{
		Kind: RecvDone, ID: r.op.ID, Words: r.size, Err: err, Phases: r.phases,
		Header: p.header(protocol.Data, r.call, r.size, r.tag),
	})
	s := &p.send
	if s.state != Held {
		return acts
	}
	if err == nil {
		// The peer was in a send. What cleared us meanwhile was a duplicate.
		p.stale = deferredHeader{}
	}
	if s.requested == 0 || p.cfg.Peer.DropsRequests {
		return p.request(now, acts)
	}
	// The peer has our SEND_REQUEST deferred, or has taken it for a duplicate.
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

// CancelRecv takes a posted receive back. It reports false if the sender has
// been cleared: then the message arrives all the same, and the caller must give
// it a buffer until RecvDone.
func (p *Pair) CancelRecv(id ID) bool {
	if p.recv.state != WaitRequest || p.recv.op.ID != id {
		return false
	}
	p.recv = receiving{}
	p.unfit = false
	return true
}

// Expects returns the place in the message of the next byte of payload, and how
// many are to come, padding not counted, while a message is arriving.
func (p *Pair) Expects() (offset, left int64, ok bool) {
	if p.recv.state != Receiving {
		return 0, 0, false
	}
	return p.recv.off, p.recv.left(), true
}

// RecvWait describes what the posted receive waits for.
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

// Deferred returns the SEND_REQUEST that no receive has answered, and since when
// it waits: the peer is blocked in a send to us.
func (p *Pair) Deferred() (h protocol.Header, since Instant, ok bool) {
	if !p.deferred.valid || p.deferred.header.Type != protocol.SendRequest {
		return protocol.Header{}, 0, false
	}
	return p.deferred.header, p.deferred.at, true
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum fingerprints the payload of a message's first datagram.
func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

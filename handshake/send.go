package handshake

import (
	"fmt"

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
	repeat   timer
	deadline timer
	tries    int // time-outs so far in this wait, or in all with the CarryOver habit
	phases   Phases

	requested bool // SEND_REQUEST has been sent
	dataSent  bool // DATA has been sent once
	// settled: DATA that must not be repeated was sent crossing ago. A
	// CLEAR_TO_SEND that comes now was sent when it had arrived, or was lost.
	settled bool
}

// crossing is how long after DATA a CLEAR_TO_SEND may come that was sent before DATA
// arrived. It is shorter than the time after which an FPGA asks again.
const crossing = deployedFirst / 2

// Send starts a message. The error is one that the caller can know beforehand:
// ErrEmpty, ErrTooLong, ErrBusy, or the PartialError of an earlier message.
func (p *Pair) Send(now Instant, op SendOp, acts []Action) ([]Action, error) {
	s := &p.send
	switch {
	case s.state != Idle:
		return acts, ErrBusy
	case op.Words == 0 && p.cfg.Peer.RefusesEmpty:
		return acts, fmt.Errorf("rank %d → rank %d: %w: it waits for payload for ever; send at least one word", p.cfg.Local, p.cfg.Remote, ErrEmpty)
	case op.Words > p.cfg.MaxWords:
		return acts, fmt.Errorf("rank %d → rank %d: %d words: %w (%d)", p.cfg.Local, p.cfg.Remote, op.Words, ErrTooLong, p.cfg.MaxWords)
	case p.partial != nil:
		earlier := *p.partial
		earlier.Earlier = true
		return acts, &earlier
	}
	*s = sending{state: Held, op: op, since: now, phases: Phases{Start: now}}
	if p.recv.active() {
		return acts, nil
	}
	return p.request(now, acts), nil
}

// SendIdle reports whether Send would be accepted.
func (p *Pair) SendIdle() bool { return p.send.state == Idle }

// request sends SEND_REQUEST for a message that has waited its turn.
func (p *Pair) request(now Instant, acts []Action) []Action {
	s := &p.send
	s.state, s.since, s.tries = WaitClear, now, 0
	s.deadline = in(now, p.cfg.Timing.ClearDeadline)
	if !s.requested {
		s.requested, s.phases.Request = true, now
	}
	p.armSend(now, p.cfg.Timing.Clear)
	acts = append(acts, Action{Kind: Transmit, ID: s.op.ID, Header: p.requestHeader()})
	stale := p.stale
	p.stale = parkedHeader{}
	if stale.valid && p.matchesClear(stale.header) {
		// The peer's receive is already posted and has cleared us. What
		// it answers to this request is then ignored.
		acts = append(acts, Action{Kind: Note, ID: s.op.ID, Event: StaleClearUsed})
		return p.transmit(now, acts)
	}
	if p.cfg.Habits.OneParkedHeader && p.parked.valid && p.matchesClear(p.parked.header) {
		return p.transmit(now, acts)
	}
	return acts
}

func (p *Pair) requestHeader() protocol.Header {
	return p.header(protocol.SendRequest, p.sendCall(), 0, p.send.op.Tag)
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
	s := &p.send
	s.state, s.since = WaitAck, now
	if !p.cfg.Habits.CarryOver {
		s.tries = 0
	}
	s.phases.Clear = now
	p.owed = false
	if p.cfg.Habits.OneParkedHeader {
		p.parked = parkedHeader{}
	}
	s.repeat, s.deadline = timer{}, timer{} // until DataSent
	return append(acts, Action{Kind: TransmitData, ID: s.op.ID, Header: p.dataHeader(), Words: s.op.Words})
}

// DataSent tells the pair when all of TransmitData had been given to the
// network: its wait for ACK begins then, however long that took.
func (p *Pair) DataSent(now Instant) {
	s := &p.send
	if s.state != WaitAck {
		return
	}
	if !s.dataSent { // repeats do not put the deadline off
		s.deadline = in(now, p.cfg.Timing.AckDeadline)
	}
	s.dataSent, s.phases.Data = true, now
	p.armAck(now)
}

// mustNotRepeat reports whether the message is cut, and the peer one that would
// store a repeat of it as data.
func (p *Pair) mustNotRepeat() bool {
	return p.cfg.Peer.CorruptsOnRepeat && p.cfg.OnPartial == FailPartial && !p.cfg.Reliable &&
		p.cfg.Shape.Datagrams(p.send.op.Words) > 1
}

func (p *Pair) armAck(now Instant) {
	if p.mustNotRepeat() {
		p.send.repeat = in(now, crossing)
		return
	}
	p.armSend(now, p.cfg.Timing.Ack)
}

func (p *Pair) armSend(now Instant, b Backoff) {
	p.send.repeat = timer{}
	if p.cfg.Reliable {
		return
	}
	if d, ok := b.after(p.send.tries); ok {
		p.send.repeat = in(now, d)
	}
}

func (p *Pair) repeatRequest(now Instant, acts []Action) []Action {
	s := &p.send
	s.tries++
	s.phases.Repeats++
	p.armSend(now, p.cfg.Timing.Clear)
	h := p.requestHeader()
	return append(acts,
		Action{Kind: Transmit, ID: s.op.ID, Header: h},
		Action{Kind: Note, ID: s.op.ID, Event: Repeated, Header: h})
}

func (p *Pair) repeatData(acts []Action) []Action {
	s := &p.send
	s.tries++
	s.phases.Repeats++
	if p.cfg.Habits.OneParkedHeader {
		p.parked = parkedHeader{}
	}
	s.repeat, s.settled = timer{}, false
	h := p.dataHeader()
	return append(acts,
		Action{Kind: TransmitData, ID: s.op.ID, Header: h, Words: s.op.Words},
		Action{Kind: Note, ID: s.op.ID, Event: Repeated, Header: h})
}

// tickSend acts on the sender's times.
func (p *Pair) tickSend(now Instant, acts []Action) []Action {
	s := &p.send
	if s.deadline.due(now) {
		if s.state == WaitAck && p.mustNotRepeat() {
			p.partial = &PartialError{
				Remote: p.cfg.Remote, Words: s.op.Words,
				Datagrams: p.cfg.Shape.Datagrams(s.op.Words), Elapsed: now - s.since,
			}
			return p.endSend(now, p.partial, acts)
		}
		w, _ := p.SendWait()
		return p.endSend(now, &TimeoutError{Wait: w, Elapsed: now - s.since}, acts)
	}
	if !s.repeat.due(now) {
		return acts
	}
	if s.state == WaitClear {
		return p.repeatRequest(now, acts)
	}
	if p.mustNotRepeat() {
		s.repeat, s.settled = timer{}, true
		return acts
	}
	return p.repeatData(acts)
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
	switch s.state {
	case WaitClear:
		if p.matchesSend(h) {
			return p.transmit(now, acts)
		}
		p.park(now, h)
		return append(acts, Action{Kind: Drop, Reason: ReasonDatatype, Header: h})
	case Held:
		// Only a peer that does two things at once clears us while we
		// serve its own message; a deployed one cannot mean this send.
		if s.requested && !p.cfg.Peer.RequestImpliesAck && p.matchesSend(h) {
			return p.transmit(now, acts)
		}
	case WaitAck:
		// An FPGA asks again only until the first datagram has come: it has
		// stored nothing, and waits for a header.
		if s.settled && p.matchesSend(h) {
			return p.repeatData(acts)
		}
	case Idle:
		if p.cfg.Peer.UsesStaleClears || p.owed {
			p.stale = parkedHeader{valid: true, header: h, at: now}
		}
	}
	p.park(now, h)
	return append(acts, Action{Kind: Drop, Reason: ReasonStale, Header: h})
}

func (p *Pair) onAck(now Instant, h protocol.Header, acts []Action) []Action {
	s := &p.send
	if s.state == WaitAck && p.matchesSend(h) {
		return p.acked(now, acts)
	}
	p.park(now, h)
	if p.partial != nil {
		// Late, but it came: the peer is not in the middle of anything.
		p.partial = nil
	}
	reason := ReasonStale
	if s.state == WaitAck {
		reason = ReasonDatatype
	}
	return append(acts, Action{Kind: Drop, Reason: reason, Header: h})
}

// acked ends the send with success.
func (p *Pair) acked(now Instant, acts []Action) []Action {
	p.send.phases.Ack = now
	if p.cfg.Habits.OneParkedHeader {
		p.parked = parkedHeader{}
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
	p.owed = err != nil && s.requested
	acts = append(acts, Action{Kind: SendDone, ID: s.op.ID, Words: s.op.Words, Err: err, Phases: s.phases})
	if p.recv.state == WaitRequest {
		acts = p.answerParked(now, acts)
	}
	return acts
}

// CancelSend takes a send back. It reports false if DATA is already on its way:
// then the message goes on, its outcome comes as SendDone, and the caller must
// keep the payload until then.
func (p *Pair) CancelSend(now Instant, id ID, acts []Action) ([]Action, bool) {
	s := &p.send
	if s.state == Idle || s.op.ID != id || s.state == WaitAck {
		return acts, false
	}
	p.owed = p.owed || s.requested
	*s = sending{}
	if p.next != nil {
		p.renewSend()
	}
	return acts, true
}

// SendWait describes what the message being sent waits for.
func (p *Pair) SendWait() (Wait, bool) {
	s := &p.send
	if s.state == Idle {
		return Wait{}, false
	}
	return Wait{
		ID: s.op.ID, State: s.state, Local: p.cfg.Local, Remote: p.cfg.Remote,
		For: s.state.WaitsFor(), Since: s.since, Repeats: s.phases.Repeats, Words: s.op.Words,
	}, true
}

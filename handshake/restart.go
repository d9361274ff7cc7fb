package handshake

import (
	"errors"
	"fmt"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// restartTimeout is the time after which a deployed peer that a restart of this rank has interrupted retransmits
// nothing more. An FPGA of rank 63 retransmits DATA for the last time after 8.4 s, or after twice that time if its
// clock runs at half speed.
const restartTimeout = 20 * time.Second

// maxCopyDelay is the longest time by which a copy of a packet is assumed to arrive after the packet.
const maxCopyDelay = time.Second

// inherited is the state that a Pair inherits from previous processes of its rank. The Pair keeps it until packets from
// the peer show that it no longer matters.
type inherited struct {
	saved SavedState
	// data describes DATA that arrived for a message that this process has not cleared. The flag proven is set if that
	// DATA is not a late duplicate, either because a previous process cleared the message according to saved, or
	// because the DATA came again at its sender's interval.
	data struct {
		valid, proven bool
		call          protocol.Call
		tag           uint8
		size, sum     uint32
		at            Instant
	}
	// deadline is the timer after which an interrupted peer is known to wait forever. startedAt is the time at which
	// this process started.
	deadline  timer
	startedAt Instant
}

// Restore restores the state saved by the previous process of this rank, or the zero SavedState. Call it before any
// event. Only a Pair with restored state receives messages that another process has cleared.
func (p *Pair) Restore(now Instant, state SavedState) {
	if p.cfg.Reliable || p.cfg.Quirks.OneDeferredHeader {
		return
	}
	if state.Rebooted {
		state.In.StepTime, state.Out.StepTime, state.Acked = now-restartTimeout, now-restartTimeout, now-restartTimeout
	}
	p.inherited = &inherited{saved: state, startedAt: now}
	// otherwise the peer has our ACK
	if state.HasReceived && (state.In.Progress == NoMessage || state.In.Progress == Acknowledged) {
		p.lastReceived = receivedMessage{valid: true, call: state.Call, size: state.Size, sum: state.Sum,
			ackedAt:   state.Acked,
			earlyData: timerAfter(state.Acked, p.ackLost())}
		p.lastReceived.earlyData.expire(now)
	}
	if state.Out.Progress == Requested {
		p.clearPending, p.requestedAt = true, state.Out.StepTime
	}
	switch {
	case state.DeadEnd && state.DeadOnSend:
		p.enterDeadEnd(p.restartError(InOurSend, 0), true)
	case state.DeadEnd:
		p.enterDeadEnd(p.restartError(InPeerSend, 0), false)
	case p.cfg.Peer.BlockingCalls && state.In.Progress != NoMessage, p.mayBeInOurSend():
		p.inherited.deadline = timerAfter(now, restartTimeout)
	}
}

// dropInherited discards the state left by previous processes, because it no longer matters.
func (p *Pair) dropInherited(now Instant) {
	if p.inherited == nil {
		return
	}
	p.inherited = nil
	if s := &p.send; s.peerAwaitsData {
		s.peerAwaitsData, s.deadline = false, timer{}
		if s.state == WaitClear {
			s.deadline = timerAfter(now, p.cfg.Timing.ClearDeadline)
		}
	}
}

// mayBeInOurSend reports whether the peer may be in the middle of a message from a previous process, so that it could
// store any packet as data of that message.
func (p *Pair) mayBeInOurSend() bool {
	if p.inherited == nil {
		return false
	}
	out := &p.inherited.saved.Out
	return out.Progress == Cleared && p.cfg.Peer.CorruptsOnRetransmit && p.retransmitsOnClear() &&
		p.fragments(out.Words)
}

// requestInDoubt reports whether the deferred SEND_REQUEST may be a late copy, sent before the peer began to receive
// our message. The peer could then store a CLEAR_TO_SEND as data of that message.
func (p *Pair) requestInDoubt() bool { return p.mayBeInOurSend() && !p.resuming }

// mayWaitForData reports whether the peer may have sent its last CLEAR_TO_SEND while no process was running for this
// rank, so that it waits for DATA forever. This is impossible if this process replaced the previous one at once: the
// last SEND_REQUEST is then recent, because the previous process retransmitted it while it waited.
func (p *Pair) mayWaitForData() bool {
	if p.inherited == nil || p.staleClear.valid || !p.cfg.Peer.BlockingCalls {
		return false
	}
	const steps = deployedStep * deployedRetransmissions * (deployedRetransmissions - 1) / 2
	series := deployedRetransmissions*max(p.cfg.Peer.RetransmitsClear, deployedFirst) + steps
	out := &p.inherited.saved.Out
	return out.Progress != NoMessage && p.inherited.startedAt-out.StepTime > series
}

// clearedPrevious reports whether a CLEAR_TO_SEND that this process has not requested answers a SEND_REQUEST of a
// previous process, so that the peer is waiting for DATA. It does if the previous process was waiting for it, or if it
// comes again at the peer's interval.
func (p *Pair) clearedPrevious(now Instant) bool {
	spacing := p.cfg.Peer.RetransmitsClear * 9 / 10
	if p.inherited == nil || p.send.requestsSent > 0 || spacing == 0 {
		return false
	}
	out := &p.inherited.saved.Out
	return out.Progress == Requested || out.Progress == Cleared && now-out.StepTime >= spacing ||
		p.unansweredClear.valid && now-p.unansweredClear.receivedAt >= spacing
}

// Offer examines a datagram before the caller passes it to Datagram, and reports whether it is DATA of a message that a
// previous process of this rank cleared. If so, Offer defers the message until Datagram returns. A receive posted for
// it in between receives the message, beginning with this datagram. Without a receive, Datagram drops the datagram, and
// the caller should offer the peer's next retransmission again.
func (p *Pair) Offer(now Instant, b []byte) bool {
	e := p.inherited
	if e == nil || p.recv.isActive() || p.deferred.valid || p.deadEnd.err != nil {
		return false
	}
	header, defect := p.cfg.Profile.Parse(b)
	if !defect.OK() || header.Type != protocol.Data || !header.Call.IsSend() || p.checkRanks(header) != ReasonNone ||
		header.Size > p.cfg.MaxWords {
		return false
	}
	payload := b[protocol.HeaderLen:]
	if p.equalsLast(header, payload) || !p.lengthFits(0, int64(header.Size)*protocol.WordLen, payload) {
		return false
	}
	d, sum := &e.data, checksum(payload)
	switch {
	case !d.valid || d.call != header.Call || d.tag != header.Tag || d.size != header.Size || d.sum != sum:
		in := &e.saved.In
		d.valid, d.call, d.tag, d.size, d.sum, d.at = true, header.Call, header.Tag, header.Size, sum, now
		d.proven = in.Progress == Cleared && in.Call == header.Call && in.Tag == header.Tag
	case now-d.at >= max(p.cfg.Peer.AckRetransmit, deployedFirst)*9/10:
		d.proven, d.at = true, now
	}
	if p.cfg.Peer.BlockingCalls {
		e.deadline = timerAfter(now, restartTimeout)
	}
	if d.proven {
		header.Type, header.Size = protocol.SendRequest, 0
		p.deferred, p.resuming = deferredHeader{valid: true, header: header, receivedAt: d.at}, true
	}
	return d.proven
}

// dropOffer discards a message that was offered to the caller, but for which no receive was posted.
func (p *Pair) dropOffer() {
	if p.resuming {
		p.deferred, p.resuming = deferredHeader{}, false
	}
}

// resume begins to receive a message that a previous process cleared. It transmits nothing, because the peer already
// waits for ACK.
func (p *Pair) resume(now Instant, acts []Action) []Action {
	recv := &p.recv
	p.resuming = false
	recv.resumed, recv.phases.Clear = true, now
	recv.rto, recv.earlyRequest, recv.deadline = timer{}, timer{}, timerAfter(now, restartTimeout)
	h := protocol.Header{Dst: p.cfg.Local, Src: p.cfg.Remote, Size: p.inherited.data.size, Call: recv.call,
		Type: protocol.Data, Tag: recv.tag}
	return append(acts, Action{Kind: Note, ID: recv.op.ID, Event: Resumed, Header: h})
}

// endInterrupted ends the receive of a message that a previous process cleared, because the rest of the message did not
// arrive in time.
func (p *Pair) endInterrupted(now Instant, acts []Action) []Action {
	err := p.restartError(InPeerSend, now-p.recv.phases.Clear)
	if !p.cfg.Peer.BlockingCalls { // the peer's send ends by itself
		return p.endRecv(now, err, acts)
	}
	p.enterDeadEnd(err, false)
	return p.abortDeadEnd(now, p.endRecv(now, err, acts))
}

// tickInherited handles the deadline of an interrupted peer. A peer that was silent until the deadline waits forever,
// so tickInherited ends the operations that wait for the peer.
func (p *Pair) tickInherited(now Instant, acts []Action) []Action {
	e := p.inherited
	if !e.deadline.isDue(now) {
		return acts
	}
	if p.recv.isActive() { // the receive has its own deadline
		e.deadline = timerAfter(now, restartTimeout)
		return acts
	}
	e.deadline = timer{}
	switch {
	case p.mayBeInOurSend():
		p.enterDeadEnd(p.restartError(InOurSend, now-e.startedAt), true)
	case e.saved.In.Progress == Acknowledged:
		p.enterDeadEnd(p.restartError(MayLackAck, now-e.startedAt), false)
	case e.saved.In.Progress == NoMessage && !e.data.valid:
		return acts
	default:
		p.enterDeadEnd(p.restartError(InPeerSend, now-e.startedAt), false)
	}
	return p.abortDeadEnd(now, acts)
}

// Release starts the operations that were held back because of a previous process. It does so only if the peer has
// shown that it continues.
func (p *Pair) Release(now Instant, acts []Action) []Action {
	if p.recv.state == WaitRequest && !p.deferredMismatch {
		acts = p.answerDeferred(now, acts)
	}
	if p.send.state == Held && !p.recv.isActive() && !p.mayBeInOurSend() {
		return p.startSend(now, acts)
	}
	return acts
}

// ErrRestart matches every *RestartError.
var ErrRestart = errors.New("this rank was restarted in the middle of an exchange")

// Interrupted describes which operation was interrupted when this rank was restarted.
type Interrupted uint8

const (
	// InOurSend: a message from this rank was interrupted, and the peer may have received only a part of it.
	InOurSend Interrupted = iota + 1
	// InPeerSend: a message from the peer was interrupted, and the peer is waiting for CLEAR_TO_SEND or ACK.
	InPeerSend
	// MayWaitForData: the peer may have sent CLEAR_TO_SEND while no process was running for this rank, and may now wait
	// for DATA.
	MayWaitForData
	// MayLackAck: the peer may be waiting for the ACK of a message that this rank has received.
	MayLackAck
)

// RestartError reports that a restart of this rank interrupted the exchange of a message, which the deployed peer does
// not resume.
type RestartError struct {
	Local, Remote uint32
	Interrupted   Interrupted
	// Words is the size of the message in words, or 0 if it is unknown.
	Words uint32
	// Before is the time from the last step of the exchange to the start of this process, or 0 if unknown. Elapsed is
	// the time that this process has waited.
	Before, Elapsed time.Duration
	// Rebooted is set if the host was rebooted, not only the process restarted.
	Rebooted bool
}

// restartError returns the error of an operation that a restart has interrupted. The parameter elapsed is the time that
// the operation has waited.
func (p *Pair) restartError(what Interrupted, elapsed time.Duration) *RestartError {
	err := &RestartError{Local: p.cfg.Local, Remote: p.cfg.Remote, Interrupted: what, Elapsed: elapsed}
	e := p.inherited
	if e == nil {
		return err
	}
	err.Rebooted = e.saved.Rebooted
	at := e.saved.Out.StepTime
	switch {
	case e.saved.DeadEnd:
		err.Words, at = e.saved.DeadWords, e.startedAt
	case what == MayLackAck:
		err.Words, at = e.saved.Size, e.saved.Acked
	case what == InPeerSend:
		err.Words, at = e.data.size, e.saved.In.StepTime
		if e.saved.In.Progress == NoMessage {
			at = e.startedAt
		}
	default:
		err.Words = e.saved.Out.Words
	}
	if !err.Rebooted {
		err.Before = e.startedAt - at
	}
	return err
}

// Error describes the interrupted exchange and the way to recover.
func (e *RestartError) Error() string {
	process := fmt.Sprintf("an earlier process of rank %d", e.Local)
	switch {
	case e.Rebooted:
		process += ", before this host was rebooted"
	case e.Before > 0:
		process += fmt.Sprintf(", %s before this one started", Round(e.Before))
	}
	message := "a message"
	if e.Words > 0 {
		message = fmt.Sprintf("a message of %d words", e.Words)
	}
	step := resetStep(e.Local, e.Remote)
	switch e.Interrupted {
	case InOurSend:
		return fmt.Sprintf("rank %d may be in the middle of %s from %s: it has not acknowledged it, and anything "+
			"sent now could be stored as its data. Restart its role, %s",
			e.Remote, message, process, step)
	case InPeerSend:
		return fmt.Sprintf("rank %d is in the send of %s to %s, which ended before it acknowledged it. Rank %d "+
			"retransmits it no more and waits forever: restart its role or program, %s",
			e.Remote, message, process, e.Remote, step)
	case MayLackAck:
		return fmt.Sprintf("no packet received from rank %d for %s. It may be in the send of %s to %s, which had "+
			"received it and "+
			"ended before its ACK is known to be sent: then rank %d waits for that forever, so restart its role or "+
			"program, %s",
			e.Remote, Round(e.Elapsed), message, process, e.Remote, step)
	}
	return fmt.Sprintf("rank %d has not answered for %s. It may have answered %s: then it waits for the DATA of that "+
		"message forever, so restart its role or program, %s. Otherwise it has not posted its receive yet: "+
		"repeat the send",
		e.Remote, Round(e.Elapsed), process, step)
}

// Is reports whether target is ErrRestart.
func (e *RestartError) Is(target error) bool { return target == ErrRestart }

package handshake

import (
	"errors"
	"fmt"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// restartTime is the time after which a deployed peer no longer retransmits anything, if a restart of this rank has
// interrupted it. An FPGA of rank 63 retransmits DATA for the last time after 8.4 s, or after twice that time if its
// clock runs at half speed.
const restartTime = 20 * time.Second

// latestCopy is the maximum delay between a packet and a copy of it.
const latestCopy = time.Second

// earlier is the state that a Pair inherits from previous processes of its rank. It is kept until packets from the peer
// show that it no longer matters.
type earlier struct {
	kept Kept
	// data describes DATA of a message that this process has not cleared. proven is set if the DATA is not a late
	// duplicate, because the message was cleared according to kept, or because DATA came again at its sender's
	// interval.
	data struct {
		valid, proven bool
		call          protocol.Call
		tag           uint8
		size, sum     uint32
		at            Instant
	}
	// deadline is the time after which an interrupted peer is known to wait forever. began is the time at which this
	// process started.
	deadline timer
	began    Instant
}

// Restore sets the state that the previous process of this rank has kept, or the zero Kept if there is none. Call it
// before any event. Only a Pair with restored state receives messages that it has not cleared itself.
func (p *Pair) Restore(now Instant, k Kept) {
	if p.cfg.Reliable || p.cfg.Quirks.OneDeferredHeader {
		return
	}
	if k.Rebooted {
		k.In.At, k.Out.At, k.Acked = now-restartTime, now-restartTime, now-restartTime
	}
	p.earlier = &earlier{kept: k, began: now}
	if k.Received && (k.In.Progress == NoMessage || k.In.Progress == Acknowledged) { // otherwise the peer has our ACK
		p.last = finished{valid: true, call: k.Call, size: k.Size, sum: k.Sum, acked: k.Acked,
			early: in(k.Acked, p.ackLost())}
		p.last.early.expire(now)
	}
	if k.Out.Progress == Requested {
		p.clearPending, p.requestedAt = true, k.Out.At
	}
	switch {
	case k.DeadEnd && k.Sent:
		p.enterDeadEnd(p.restartError(InOurSend, 0), true)
	case k.DeadEnd:
		p.enterDeadEnd(p.restartError(InItsSend, 0), false)
	case p.cfg.Peer.OneAtATime && k.In.Progress != NoMessage, p.inOurSend():
		p.earlier.deadline = in(now, restartTime)
	}
}

// endEarlier discards the state of previous processes, because it no longer matters.
func (p *Pair) endEarlier(now Instant) {
	if p.earlier == nil {
		return
	}
	p.earlier = nil
	if s := &p.send; s.suspect {
		s.suspect, s.deadline = false, timer{}
		if s.state == WaitClear {
			s.deadline = in(now, p.cfg.Timing.ClearDeadline)
		}
	}
}

// inOurSend reports whether the peer may be in the middle of a message that a previous process began to send, so that
// it could store any packet as data of that message.
func (p *Pair) inOurSend() bool {
	if p.earlier == nil {
		return false
	}
	out := &p.earlier.kept.Out
	return out.Progress == Cleared && p.cfg.Peer.CorruptsOnRetransmit && p.retransmitsOnClear() &&
		p.fragments(out.Words)
}

// requestInDoubt reports whether the deferred SEND_REQUEST may be a late copy, sent before the peer began to receive
// our message. The peer could store a CLEAR_TO_SEND as data of that message.
func (p *Pair) requestInDoubt() bool { return p.inOurSend() && !p.resumes }

// mayWaitForData reports whether the peer may have cleared a message of a previous process while no process was running
// for this rank. It may then have sent its last CLEAR_TO_SEND, and wait for DATA forever. The previous process
// retransmitted SEND_REQUEST while it was waiting, so if this process replaced it at once, its last SEND_REQUEST is
// recent.
func (p *Pair) mayWaitForData() bool {
	if p.earlier == nil || p.stale.valid || !p.cfg.Peer.OneAtATime {
		return false
	}
	const steps = deployedStep * deployedRetransmissions * (deployedRetransmissions - 1) / 2
	series := deployedRetransmissions*max(p.cfg.Peer.RetransmitsClear, deployedFirst) + steps
	out := &p.earlier.kept.Out
	return out.Progress != NoMessage && p.earlier.began-out.At > series
}

// clearedEarlier reports whether a CLEAR_TO_SEND for which this process has not asked answers a SEND_REQUEST of a
// previous process, so that the peer is waiting for DATA. That is so if the previous process was waiting for it, or if
// it comes again at the peer's interval.
func (p *Pair) clearedEarlier(now Instant) bool {
	spacing := p.cfg.Peer.RetransmitsClear * 9 / 10
	if p.earlier == nil || p.send.requested > 0 || spacing == 0 {
		return false
	}
	out := &p.earlier.kept.Out
	return out.Progress == Requested || out.Progress == Cleared && now-out.At >= spacing ||
		p.unanswered.valid && now-p.unanswered.at >= spacing
}

// Offer examines a datagram before it is passed to Datagram, and reports whether it is DATA of a message that a
// previous process of this rank cleared. If so, the message is deferred until Datagram returns. A receive that is
// posted for it before that receives the message, beginning with this datagram. If no receive is posted, Datagram drops
// the datagram, and the peer's next retransmission should be offered again.
func (p *Pair) Offer(now Instant, b []byte) bool {
	e := p.earlier
	if e == nil || p.recv.active() || p.deferred.valid || p.dead.err != nil {
		return false
	}
	h, defect := p.cfg.Profile.Parse(b)
	if !defect.OK() || h.Type != protocol.Data || !h.Call.IsSend() || p.misdirected(h) != ReasonNone ||
		h.Size > p.cfg.MaxWords {
		return false
	}
	payload := b[protocol.HeaderLen:]
	if p.isLast(h, payload) || !p.lengthFits(0, int64(h.Size)*protocol.WordLen, payload) {
		return false
	}
	d, sum := &e.data, checksum(payload)
	switch {
	case !d.valid || d.call != h.Call || d.tag != h.Tag || d.size != h.Size || d.sum != sum:
		in := &e.kept.In
		d.valid, d.call, d.tag, d.size, d.sum, d.at = true, h.Call, h.Tag, h.Size, sum, now
		d.proven = in.Progress == Cleared && in.Call == h.Call && in.Tag == h.Tag
	case now-d.at >= max(p.cfg.Peer.AckRetransmit, deployedFirst)*9/10:
		d.proven, d.at = true, now
	}
	if p.cfg.Peer.OneAtATime {
		e.deadline = in(now, restartTime)
	}
	if d.proven {
		h.Type, h.Size = protocol.SendRequest, 0
		p.deferred, p.resumes = deferredHeader{valid: true, header: h, at: d.at}, true
	}
	return d.proven
}

// forgetOffer discards an offered message for which no receive was posted.
func (p *Pair) forgetOffer() {
	if p.resumes {
		p.deferred, p.resumes = deferredHeader{}, false
	}
}

// resume begins to receive a message that a previous process cleared. It transmits nothing, because the peer is already
// waiting for ACK.
func (p *Pair) resume(now Instant, acts []Action) []Action {
	r := &p.recv
	p.resumes = false
	r.resumed, r.phases.Clear = true, now
	r.rto, r.early, r.deadline = timer{}, timer{}, in(now, restartTime)
	h := protocol.Header{Dst: p.cfg.Local, Src: p.cfg.Remote, Size: p.earlier.data.size, Call: r.call,
		Type: protocol.Data, Tag: r.tag}
	return append(acts, Action{Kind: Note, ID: r.op.ID, Event: Resumed, Header: h})
}

// brokenOff ends the receive of a message that a previous process cleared, because the rest did not arrive in time.
func (p *Pair) brokenOff(now Instant, acts []Action) []Action {
	err := p.restartError(InItsSend, now-p.recv.phases.Clear)
	if !p.cfg.Peer.OneAtATime { // the peer's send ends by itself
		return p.endRecv(now, err, acts)
	}
	p.enterDeadEnd(err, false)
	return p.abortDeadEnd(now, p.endRecv(now, err, acts))
}

// tickEarlier handles the deadline of an interrupted peer. A peer that has been silent for so long waits forever, so
// tickEarlier ends the operations that are waiting for it.
func (p *Pair) tickEarlier(now Instant, acts []Action) []Action {
	e := p.earlier
	if !e.deadline.due(now) {
		return acts
	}
	if p.recv.active() { // the receive has its own deadline
		e.deadline = in(now, restartTime)
		return acts
	}
	e.deadline = timer{}
	switch {
	case p.inOurSend():
		p.enterDeadEnd(p.restartError(InOurSend, now-e.began), true)
	case e.kept.In.Progress == Acknowledged:
		p.enterDeadEnd(p.restartError(MayLackAck, now-e.began), false)
	case e.kept.In.Progress == NoMessage && !e.data.valid:
		return acts
	default:
		p.enterDeadEnd(p.restartError(InItsSend, now-e.began), false)
	}
	return p.abortDeadEnd(now, acts)
}

// Release starts operations that were held back because of a previous process, if the peer has shown that it continues.
func (p *Pair) Release(now Instant, acts []Action) []Action {
	if p.recv.state == WaitRequest && !p.unfit {
		acts = p.answerDeferred(now, acts)
	}
	if p.send.state == Held && !p.recv.active() && !p.inOurSend() {
		return p.request(now, acts)
	}
	return acts
}

// ErrRestart matches every *RestartError.
var ErrRestart = errors.New("this rank was restarted in the middle of an exchange")

// Interrupted is the kind of operation that a restart of this rank has interrupted.
type Interrupted uint8

const (
	// InOurSend: the peer may be in the middle of a message from this rank.
	InOurSend Interrupted = iota + 1
	// InItsSend: the peer is waiting for CLEAR_TO_SEND or ACK.
	InItsSend
	// MayWaitForData: the peer may have sent CLEAR_TO_SEND while no process was running for this rank.
	MayWaitForData
	// MayLackAck: the peer may be waiting for the ACK of a message that this rank has received.
	MayLackAck
)

// RestartError reports that a restart of this rank has interrupted the exchange of a message, and that the deployed
// peer does not continue it.
type RestartError struct {
	Local, Remote uint32
	Interrupted   Interrupted
	// Words is the size of the message, or 0 if unknown.
	Words uint32
	// Before is the time from the last step of the exchange to the start of this process, or 0 if unknown. Elapsed is
	// the time for which this process has waited.
	Before, Elapsed time.Duration
	// Rebooted is set if the host was rebooted.
	Rebooted bool
}

// restartError returns the error of an operation that has waited for the given time.
func (p *Pair) restartError(what Interrupted, elapsed time.Duration) *RestartError {
	err := &RestartError{Local: p.cfg.Local, Remote: p.cfg.Remote, Interrupted: what, Elapsed: elapsed}
	e := p.earlier
	if e == nil {
		return err
	}
	err.Rebooted = e.kept.Rebooted
	at := e.kept.Out.At
	switch {
	case e.kept.DeadEnd:
		err.Words, at = e.kept.DeadWords, e.began
	case what == MayLackAck:
		err.Words, at = e.kept.Size, e.kept.Acked
	case what == InItsSend:
		err.Words, at = e.data.size, e.kept.In.At
		if e.kept.In.Progress == NoMessage {
			at = e.began
		}
	default:
		err.Words = e.kept.Out.Words
	}
	if !err.Rebooted {
		err.Before = e.began - at
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
	case InItsSend:
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

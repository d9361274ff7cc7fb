package handshake

import (
	"errors"
	"fmt"
)

// ErrDeadEnd matches every *DeadEndError.
var ErrDeadEnd = errors.New("the peer is blocked by an earlier operation")

// DeadEndError reports that an operation failed because the deployed peer is in a dead end: an earlier operation
// failed, and the peer cannot continue by itself. It will never answer.
type DeadEndError struct {
	Local, Remote uint32
	// Cause is the error of the operation that failed first and led to the dead end.
	Cause error
}

// Error describes the peer and the cause. The description of the cause includes advice for the user.
func (e *DeadEndError) Error() string {
	return fmt.Sprintf("rank %d is in a dead end since an earlier operation failed: %v", e.Remote, e.Cause)
}

// Is reports whether target is ErrDeadEnd.
func (e *DeadEndError) Is(target error) bool { return target == ErrDeadEnd }

// Unwrap returns the cause.
func (e *DeadEndError) Unwrap() error { return e.Cause }

// resetStep returns advice for the user: which command to run, after the peer was restarted, to end the dead end.
func resetStep(local, remote uint32) string {
	return fmt.Sprintf(`then run "zrlctl reset %d --from %d"`, remote, local)
}

// deadEnd describes whether and why the peer cannot continue.
type deadEnd struct {
	err *DeadEndError // nil if the peer is not in a dead end
	// isSend is set if the failed message was ours. An ACK then shows that the peer no longer waits for the rest of the
	// message.
	isSend bool
	// trialStarted is set if a send has since started, to find out whether the peer continues.
	trialStarted bool
}

// DeadEnd returns the reason why the peer cannot continue, or nil if it can.
func (p *Pair) DeadEnd() *DeadEndError { return p.deadEnd.err }

// enterDeadEnd records that the peer cannot continue because of cause, the error of the message that is about to end.
// It discards the peer's earlier requests, because the peer might store an answer as data.
func (p *Pair) enterDeadEnd(cause error, sent bool) {
	p.deadEnd = deadEnd{err: &DeadEndError{Local: p.cfg.Local, Remote: p.cfg.Remote, Cause: cause}, isSend: sent}
	p.deferred, p.staleClear, p.unansweredClear = deferredHeader{}, deferredHeader{}, deferredHeader{}
}

// abortDeadEnd ends the Pair's other messages, and instructs the caller to end all operations that wait for the peer.
func (p *Pair) abortDeadEnd(now Instant, acts []Action) []Action {
	err := p.deadEnd.err
	if p.send.state != Idle {
		acts = p.endSend(now, err, acts)
	}
	if p.recv.state != Idle {
		acts = p.endRecv(now, err, acts)
	}
	return append(acts, Action{Kind: DeadEnd, Err: err})
}

// exitDeadEnd records that the peer is no longer in a dead end, because it has shown that it continues. The usual
// deadline applies to a trial send in progress from then on.
func (p *Pair) exitDeadEnd() {
	if s := &p.send; p.deadEnd.trialStarted && s.state == WaitClear {
		s.deadline = timerAfter(s.stateSince, p.cfg.Timing.ClearDeadline)
	}
	p.deadEnd = deadEnd{}
}

// rejectsSend reports whether a dead end rejects sends. A CPU program that has not acknowledged a message may
// nevertheless have received all of it, and then answers the next SEND_REQUEST. One trial send is therefore allowed to
// a CPU program, which a SEND_REQUEST does not harm in any state.
func (p *Pair) rejectsSend() bool {
	d := &p.deadEnd
	return d.err != nil && (!p.cfg.Peer.KeepsRequests || !d.isSend || d.trialStarted)
}

// trialTimeout returns the time after which a trial send fails if CLEAR_TO_SEND has not arrived. It is twice the time
// to the first retransmission.
func (p *Pair) trialTimeout() Instant { return 2 * p.cfg.Timing.Clear.First }

// onAckOverdue ends the current send, because the peer has not acknowledged it in time.
func (p *Pair) onAckOverdue(now Instant, acts []Action) []Action {
	s := &p.send
	err := &PartialError{
		Local: p.cfg.Local, Remote: p.cfg.Remote, Words: s.op.Words, FPGA: p.cfg.Peer.CorruptsOnRetransmit,
		Datagrams: p.cfg.Shape.NumDatagrams(s.op.Words), Elapsed: now - s.stateSince, Doubtful: s.ambiguousClear,
	}
	if s.peerRestarted { // the restart ended the message for the peer as well
		return p.endSend(now, err, acts)
	}
	p.enterDeadEnd(err, true)
	return p.abortDeadEnd(now, p.endSend(now, err, acts))
}

// mayBeRetransmit reports whether two equal packets, received at then and now, are far enough apart that the second may
// be a deployed node's retransmission of a SEND_REQUEST or CLEAR_TO_SEND rather than a copy made by the network.
func (p *Pair) mayBeRetransmit(then, now Instant) bool {
	spacing := p.cfg.Peer.RetransmitsClear * 9 / 10
	return spacing > 0 && now-then >= spacing
}

// onDataOverdue ends the current receive, because its DATA did not arrive in time. A deployed peer that has begun to
// send DATA, or has sent SEND_REQUEST more than once, is blocked in that send and waits forever after its last
// retransmission. A single SEND_REQUEST proves nothing, because it may be a late duplicate.
func (p *Pair) onDataOverdue(now Instant, acts []Action) []Action {
	r := &p.recv
	w, _ := p.RecvWait()
	err := &TimeoutError{Wait: w, Elapsed: now - r.phases.Clear}
	if !r.confirmed || r.peerRestarted || !p.cfg.Peer.BlockingCalls || p.cfg.Reliable {
		return p.endRecv(now, err, acts)
	}
	err.DeadEnd = true
	p.enterDeadEnd(err, false)
	return p.abortDeadEnd(now, p.endRecv(now, err, acts))
}

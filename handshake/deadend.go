package handshake

import (
	"errors"
	"fmt"
)

// ErrDeadEnd matches every *DeadEndError.
var ErrDeadEnd = errors.New("the peer cannot go on because of an earlier operation")

// DeadEndError ends an operation with a deployed peer that cannot go on by itself, because an earlier
// operation failed: whatever the operation waits for does not come.
type DeadEndError struct {
	Local, Remote uint32
	// Cause is the error of the first operation that failed.
	Cause error
}

// Error names the peer, and gives the cause, which says what to do.
func (e *DeadEndError) Error() string {
	return fmt.Sprintf("rank %d is in a dead end since an earlier operation failed: %v", e.Remote, e.Cause)
}

// Is makes errors.Is(err, ErrDeadEnd) true.
func (e *DeadEndError) Is(target error) bool { return target == ErrDeadEnd }

// Unwrap returns the cause.
func (e *DeadEndError) Unwrap() error { return e.Cause }

// resetStep names the command that ends a dead end after the peer was restarted.
func resetStep(local, remote uint32) string {
	return fmt.Sprintf(`then run "zrlctl reset %d --from %d"`, remote, local)
}

// deadEnd is the state of a pair whose peer cannot go on.
type deadEnd struct {
	err *DeadEndError // nil: the peer is in no dead end
	// sent: the failed message was ours, so that an ACK shows that the peer is past it.
	sent bool
	// tried: a send was started since, to find out whether the peer goes on.
	tried bool
}

// DeadEnd returns why the peer cannot go on, or nil.
func (p *Pair) DeadEnd() *DeadEndError { return p.dead.err }

// enterDeadEnd notes that the peer cannot go on because of cause, the error of the message that is about to
// end. What it asked for before it got there is forgotten: to answer that could be stored as data.
func (p *Pair) enterDeadEnd(cause error, sent bool) {
	p.dead = deadEnd{err: &DeadEndError{Local: p.cfg.Local, Remote: p.cfg.Remote, Cause: cause}, sent: sent}
	p.deferred, p.stale, p.unanswered = deferredHeader{}, deferredHeader{}, deferredHeader{}
}

// abortDeadEnd ends what else the pair has, and informs the caller, who ends what waits for the pair.
func (p *Pair) abortDeadEnd(now Instant, acts []Action) []Action {
	err := p.dead.err
	if p.send.state != Idle {
		acts = p.endSend(now, err, acts)
	}
	if p.recv.state != Idle {
		acts = p.endRecv(now, err, acts)
	}
	return append(acts, Action{Kind: DeadEnd, Err: err})
}

// leaveDeadEnd notes that the peer has shown that it goes on. A send that was tried waits as others do.
func (p *Pair) leaveDeadEnd() {
	if s := &p.send; p.dead.tried && s.state == WaitClear {
		s.deadline = in(s.since, p.cfg.Timing.ClearDeadline)
	}
	p.dead = deadEnd{}
}

// refusesSend reports whether a send is to be refused because of a dead end. An upstream CPU program that
// has not acknowledged a message may have all of it, and answers the next SEND_REQUEST then. A SEND_REQUEST
// does it no harm in any case, so one send is tried.
func (p *Pair) refusesSend() bool {
	d := &p.dead
	return d.err != nil && (!p.cfg.Peer.KeepsRequests || !d.sent || d.tried)
}

// tryTime is how long a send that is tried waits for CLEAR_TO_SEND: until its first retransmission, and as
// long again.
func (p *Pair) tryTime() Instant { return 2 * p.cfg.Timing.Clear.First }

// ackOverdue ends the message being sent, which was not acknowledged in time.
func (p *Pair) ackOverdue(now Instant, acts []Action) []Action {
	s := &p.send
	err := &PartialError{
		Local: p.cfg.Local, Remote: p.cfg.Remote, Words: s.op.Words, FPGA: p.cfg.Peer.CorruptsOnRetransmit,
		Datagrams: p.cfg.Shape.Datagrams(s.op.Words), Elapsed: now - s.since, Doubtful: s.doubtful,
	}
	if s.resetSince { // what it was in the middle of is over
		return p.endSend(now, err, acts)
	}
	p.enterDeadEnd(err, true)
	return p.abortDeadEnd(now, p.endSend(now, err, acts))
}

// asksAgain reports whether a packet that has come now, and the same one that came then, are so far apart as the
// SEND_REQUESTs of a deployed node that waits for CLEAR_TO_SEND, and its CLEAR_TO_SENDs if it waits for DATA.
func (p *Pair) asksAgain(then, now Instant) bool {
	spacing := p.cfg.Peer.RetransmitsClear * 9 / 10
	return spacing > 0 && now-then >= spacing
}

// dataOverdue ends the message being received, of which no more has come in time. A peer that has begun to
// send DATA, or that has asked to send more than once, is in that send, and waits for us forever once its own
// retransmissions are over. One SEND_REQUEST alone may be a late duplicate.
func (p *Pair) dataOverdue(now Instant, acts []Action) []Action {
	r := &p.recv
	w, _ := p.RecvWait()
	err := &TimeoutError{Wait: w, Elapsed: now - r.phases.Clear}
	if !r.certain || r.resetSince || !p.cfg.Peer.OneAtATime || p.cfg.Reliable {
		return p.endRecv(now, err, acts)
	}
	err.DeadEnd = true
	p.enterDeadEnd(err, false)
	return p.abortDeadEnd(now, p.endRecv(now, err, acts))
}

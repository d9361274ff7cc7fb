package handshake

import (
	"errors"
	"fmt"
)

// ErrDeadEnd matches every *DeadEndError.
var ErrDeadEnd = errors.New("the peer is blocked by an earlier operation")

// DeadEndError ends an operation with a deployed peer that cannot go on by itself, because an earlier operation failed.
// The peer will never answer the operation.
type DeadEndError struct {
	Local, Remote uint32
	// Cause is the error of the first operation that failed.
	Cause error
}

// Error names the peer and includes the cause, with its advice.
func (e *DeadEndError) Error() string {
	return fmt.Sprintf("rank %d is in a dead end since an earlier operation failed: %v", e.Remote, e.Cause)
}

// Is reports whether target is ErrDeadEnd.
func (e *DeadEndError) Is(target error) bool { return target == ErrDeadEnd }

// Unwrap returns the cause.
func (e *DeadEndError) Unwrap() error { return e.Cause }

// resetStep returns the command that ends a dead end after the peer was restarted.
func resetStep(local, remote uint32) string {
	return fmt.Sprintf(`then run "zrlctl reset %d --from %d"`, remote, local)
}

// deadEnd is the state of a pair whose peer cannot go on.
type deadEnd struct {
	err *DeadEndError // or nil if the peer is not in a dead end
	// sent: the failed message was ours, so that an ACK shows that the peer is past it.
	sent bool
	// tried: a send was started since, to find out whether the peer continues.
	tried bool
}

// DeadEnd returns the reason why the peer cannot go on, or nil.
func (p *Pair) DeadEnd() *DeadEndError { return p.dead.err }

// enterDeadEnd records that the peer cannot go on because of cause, the error of the message that is about to end.
// Earlier requests of the peer are forgotten: it could store an answer as data.
func (p *Pair) enterDeadEnd(cause error, sent bool) {
	p.dead = deadEnd{err: &DeadEndError{Local: p.cfg.Local, Remote: p.cfg.Remote, Cause: cause}, sent: sent}
	p.deferred, p.stale, p.unanswered = deferredHeader{}, deferredHeader{}, deferredHeader{}
}

// abortDeadEnd ends the pair's other messages, and informs the caller, who ends all operations that wait for the pair.
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

// leaveDeadEnd records that the peer has shown that it continues. A trial send then has the usual deadline.
func (p *Pair) leaveDeadEnd() {
	if s := &p.send; p.dead.tried && s.state == WaitClear {
		s.deadline = in(s.since, p.cfg.Timing.ClearDeadline)
	}
	p.dead = deadEnd{}
}

// refusesSend reports whether a dead end rejects sends. An upstream CPU program that has not acknowledged a message may
// have all of it, and then answers the next SEND_REQUEST. A SEND_REQUEST does it no harm in any state, so one send is
// tried.
func (p *Pair) refusesSend() bool {
	d := &p.dead
	return d.err != nil && (!p.cfg.Peer.KeepsRequests || !d.sent || d.tried)
}

// tryTime returns the deadline of a trial send for CLEAR_TO_SEND: twice the time to its first retransmission.
func (p *Pair) tryTime() Instant { return 2 * p.cfg.Timing.Clear.First }

// ackOverdue ends the message being sent, which was not acknowledged in time.
func (p *Pair) ackOverdue(now Instant, acts []Action) []Action {
	s := &p.send
	err := &PartialError{
		Local: p.cfg.Local, Remote: p.cfg.Remote, Words: s.op.Words, FPGA: p.cfg.Peer.CorruptsOnRetransmit,
		Datagrams: p.cfg.Shape.Datagrams(s.op.Words), Elapsed: now - s.since, Doubtful: s.doubtful,
	}
	if s.resetSince { // the message that it was in the middle of is over
		return p.endSend(now, err, acts)
	}
	p.enterDeadEnd(err, true)
	return p.abortDeadEnd(now, p.endSend(now, err, acts))
}

// asksAgain reports whether two equal packets, received then and now, are as far apart as the SEND_REQUESTs of a
// deployed node that waits for CLEAR_TO_SEND, or as its CLEAR_TO_SENDs if it waits for DATA.
func (p *Pair) asksAgain(then, now Instant) bool {
	spacing := p.cfg.Peer.RetransmitsClear * 9 / 10
	return spacing > 0 && now-then >= spacing
}

// dataOverdue ends the message being received, which was not continued in time. A peer that has begun to send DATA, or
// that has asked to send more than once, is in that send, and waits for us forever after its last retransmission. A
// single SEND_REQUEST may be a late duplicate.
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

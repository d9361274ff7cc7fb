package core

import (
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// leftover describes the operations that an earlier program left unfinished at a deployed node. The node continues
// with them: it requests the DATA of a send, and sends messages for the program's receives, which must not reach
// the next program. Only the order of packets identifies these messages, so no more are discarded than the program
// could still receive.
type leftover struct {
	// receives is the number of receives that were posted. replies is 1 if the node may answer a message from the
	// program with a message.
	receives, replies int
	since             handshake.Instant
	// unanswered means that the program has sent the peer a message, and has not received a message from it since.
	unanswered bool
}

const (
	// leftTime is how long after the end of a program a message for that program may still begin. A deployed node
	// has stopped retransmitting SEND_REQUEST by then.
	leftTime = 4 * time.Second
	// leftBusyTime replaces leftTime while the node does not accept the next program's message, because it is still
	// in an earlier call.
	leftBusyTime = time.Minute
)

// deployed reports whether the peer does one thing at a time, and knows of no program but its own.
func (l *handshakeLink) deployed() bool { return l.p.cfg.Handshake.Peer.OneAtATime }

// leaveRecv notes that a receive was cancelled because its program no longer exists. The peer's next message may be
// for that receive.
func (l *handshakeLink) leaveRecv() {
	if l.deployed() {
		l.left.receives++
		l.left.since = l.p.e.at
	}
}

// leaveSend lets the peer complete a send whose program no longer exists, and reports whether the send is still in
// progress.
func (l *handshakeLink) leaveSend(r *Request) bool {
	if !l.machine().LeaveSend(l.p.e.at, r.id) {
		return false
	}
	l.replyDue()
	return true
}

func (l *handshakeLink) replyDue() {
	if l.deployed() {
		l.left.replies, l.left.since = 1, l.p.e.at
	}
}

// leftSendDone notes the end of a send whose caller is gone.
func (l *handshakeLink) leftSendDone(r *Request, err error) {
	if r.discards && err == nil {
		l.replyDue()
	}
}

// dropLeft cancels the send that an earlier program left, unless the peer has cleared it. The next program's send
// replaces it: a deployed node keeps one SEND_REQUEST of the two.
func (l *handshakeLink) dropLeft() {
	if !l.pair.SendLeft() {
		return
	}
	e := l.p.e
	acts, ok := l.machine().CancelSend(e.at, l.sending.id, e.pairs.list[:0])
	if e.pairs.list = acts; ok {
		e.buffers.put(l.sending.buf)
		l.sending = nil
	}
	l.perform(nil)
}

// isLeft reports whether a message that the peer requests to send is for an earlier program.
func (l *handshakeLink) isLeft() bool {
	if l.left.receives+l.left.replies == 0 {
		return false
	}
	age := l.p.e.at - l.left.since
	return age < leftTime || age < leftBusyTime && l.sending != nil && !l.sending.detached
}

// discardNext receives and drops the message whose SEND_REQUEST is deferred. It reports false if this has to
// wait, because a send in progress may show that the message does not exist.
func (l *handshakeLink) discardNext() bool {
	e := l.p.e
	l.deferred = nil
	if w, ok := l.pair.SendWait(); ok && sendMoves(w) {
		return false
	}
	l.left.receives, l.left.replies = max(l.left.receives-1, 0), 0
	l.left.since = e.at
	e.nextID++
	r := &Request{kind: OpRecv, peer: l.p.rank, p: l.p, id: e.nextID, posted: e.at, anyDatatype: true, detached: true}
	h, _, _ := l.pair.Deferred()
	l.recving = r
	acts, err := l.machine().Recv(e.at, handshake.RecvOp{ID: r.id, Any: true, Tag: h.Tag}, e.pairs.list)
	e.pairs.list = acts
	if err != nil { // impossible: recving was nil
		l.recving = nil
		return false
	}
	l.discardRecving()
	return true
}

// discardRecving makes the pair drop the message that is arriving for a detached receive.
func (l *handshakeLink) discardRecving() {
	l.recving.discards = true
	l.machine().LeaveRecv(l.p.e.at, l.recving.id)
}

// revokeRecv cancels a receive whose program no longer exists. It succeeds even if the sender is already cleared,
// provided that the peer's messages are numbered. The message stays with its sender.
func (l *handshakeLink) revokeRecv(r *Request) bool {
	e := l.p.e
	acts, ok := l.machine().RevokeRecv(e.at, r.id, e.pairs.list[:0])
	if e.pairs.list = acts; ok {
		l.recving = nil
	}
	l.perform(nil)
	return ok
}

// programEnded notes that all operations of a program were cancelled, and that the next program may use the rank.
// clean is as in Engine.ProgramEnded.
func (l *handshakeLink) programEnded(clean bool) {
	if r := l.recving; r != nil && r.detached {
		if l.revokeRecv(r) {
			l.p.e.buffers.put(r.buf)
		} else {
			l.discardRecving()
		}
	}
	if r := l.sending; r != nil && r.detached {
		r.discards = true
		l.replyDue()
	}
	if l.left.unanswered && !clean {
		l.replyDue()
	}
	l.left.unanswered = false
	if in := l.deferred; in != nil && l.isLeft() {
		l.p.e.matching.of(in.comm).RemoveUnexpected(in.handle)
		l.p.e.matching.inbounds.retire(in)
		l.discardNext()
	}
	l.perform(nil)
}

// leftOpen returns the operation that an earlier program left unfinished, if any.
func (l *handshakeLink) leftOpen() state.LeftOpen {
	switch {
	case l.sending != nil && l.sending.discards:
		return state.LeftSend
	case l.recving != nil && l.recving.discards:
		return state.LeftReceive
	case l.isLeft():
		return state.LeftNext
	}
	return state.LeftNothing
}

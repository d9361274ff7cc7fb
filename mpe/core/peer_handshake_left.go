package core

import (
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// leftover describes what a program that is gone leaves at a deployed node. The node goes on with it: it asks for the
// DATA of a send, and sends messages for the program's receives, which are not for the next program. Only the order of
// its packets shows which those are, so at most as many messages are discarded as that program could still receive.
type leftover struct {
	// Number of receives that were posted, and 1 if a message of the program may be answered by one.
	receives, replies int
	since             handshake.Instant
	// unanswered: the program has sent the peer a message, and received none since.
	unanswered bool
}

const (
	// leftTime is how long after its end a message may begin that is for the program that is gone. A deployed node's
	// own retransmissions of SEND_REQUEST are over by then.
	leftTime = 4 * time.Second
	// leftBusyTime is the same while the node does not take the next program's message: it is in an earlier call.
	leftBusyTime = time.Minute
)

// deployed reports whether the peer does one thing at a time, and knows of no program but its own.
func (l *handshakeLink) deployed() bool { return l.p.cfg.Handshake.Peer.OneAtATime }

// leaveRecv notes that a receive which the peer's next message may be for was cancelled as its program is gone.
func (l *handshakeLink) leaveRecv() {
	if l.deployed() {
		l.left.receives++
		l.left.since = l.p.e.at
	}
}

// leaveSend leaves a send of a program that is gone to the peer, and reports whether it is still in progress.
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

// leftSendDone notes the end of the transfer of a send whose caller is gone.
func (l *handshakeLink) leftSendDone(r *Request, err error) {
	if r.discards && err == nil {
		l.replyDue()
	}
}

// dropLeft cancels a send of a program that is gone, if the peer has not cleared it: the next program's send replaces
// it. A deployed node keeps one SEND_REQUEST of the two.
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

// isLeft reports whether a message that the peer asks to send is for a program that is gone.
func (l *handshakeLink) isLeft() bool {
	if l.left.receives+l.left.replies == 0 {
		return false
	}
	age := l.p.e.at - l.left.since
	return age < leftTime || age < leftBusyTime && l.sending != nil && !l.sending.detached
}

// discardNext receives the message whose SEND_REQUEST is deferred, and drops it. It reports false if that has to wait,
// as a send in progress may show that there is no such message.
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
	if err != nil { // cannot be: recving was nil
		l.recving = nil
		return false
	}
	l.discardRecving()
	return true
}

// discardRecving has the message that is arriving for a detached receive dropped.
func (l *handshakeLink) discardRecving() {
	l.recving.discards = true
	l.machine().LeaveRecv(l.p.e.at, l.recving.id)
}

// revokeRecv cancels a receive of a program that is gone although its sender has been cleared, if the peer is numbered.
// The message stays with its sender.
func (l *handshakeLink) revokeRecv(r *Request) bool {
	e := l.p.e
	acts, ok := l.machine().RevokeRecv(e.at, r.id, e.pairs.list[:0])
	if e.pairs.list = acts; ok {
		l.recving = nil
	}
	l.perform(nil)
	return ok
}

// programEnded notes that all operations of a program were cancelled: the rank is the next one's. Clean is as in
// Engine.ProgramEnded.
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

// leftOpen returns which operation a program that is gone left open, if any.
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

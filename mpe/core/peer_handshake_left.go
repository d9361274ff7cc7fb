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
	// leftoverTime is the time after the end of a program in which a message may still begin for that program. A
	// deployed node has stopped retransmitting SEND_REQUEST by then.
	leftoverTime = 4 * time.Second
	// leftoverBusyTime replaces leftoverTime while the node does not accept the next program's message, because it is
	// still in an earlier call.
	leftoverBusyTime = time.Minute
)

// isDeployed reports whether the peer does one thing at a time, and knows of no program but its own.
func (l *handshakeLink) isDeployed() bool { return l.p.cfg.Handshake.Peer.BlockingCalls }

// noteLeftRecv notes that a receive was cancelled because its program no longer exists. The peer's next message may be
// for that receive.
func (l *handshakeLink) noteLeftRecv() {
	if l.isDeployed() {
		l.leftover.receives++
		l.leftover.since = l.p.e.now
	}
}

// detachSend lets the peer complete a send whose program no longer exists, and reports whether the send is still in
// progress.
func (l *handshakeLink) detachSend(r *Request) bool {
	if !l.touchedPair().DetachSend(l.p.e.now, r.id) {
		return false
	}
	l.expectReply()
	return true
}

func (l *handshakeLink) expectReply() {
	if l.isDeployed() {
		l.leftover.replies, l.leftover.since = 1, l.p.e.now
	}
}

// onLeftSendDone notes the end of a send whose caller is gone.
func (l *handshakeLink) onLeftSendDone(r *Request, err error) {
	if r.dropsMessage && err == nil {
		l.expectReply()
	}
}

// cancelLeftSend cancels the send that an earlier program left, unless the peer has cleared it. The next program's send
// replaces it: a deployed node keeps one SEND_REQUEST of the two.
func (l *handshakeLink) cancelLeftSend() {
	if !l.pair.IsSendDetached() {
		return
	}
	e := l.p.e
	acts, ok := l.touchedPair().CancelSend(e.now, l.sending.id, e.pairActions.list[:0])
	if e.pairActions.list = acts; ok {
		e.buffers.put(l.sending.buf)
		l.sending = nil
	}
	l.perform(nil)
}

// isForEarlier reports whether a message that the peer requests to send is for an earlier program.
func (l *handshakeLink) isForEarlier() bool {
	if l.leftover.receives+l.leftover.replies == 0 {
		return false
	}
	age := l.p.e.now - l.leftover.since
	return age < leftoverTime || age < leftoverBusyTime && l.sending != nil && !l.sending.detached
}

// discardNext receives and drops the message whose SEND_REQUEST is deferred. It reports false if this has to
// wait, because a send in progress may show that the message does not exist.
func (l *handshakeLink) discardNext() bool {
	core := l.p.e
	l.deferred = nil
	if w, ok := l.pair.SendWait(); ok && sendTransfers(w) {
		return false
	}
	l.leftover.receives, l.leftover.replies = max(l.leftover.receives-1, 0), 0
	l.leftover.since = core.now
	core.nextID++
	r := &Request{kind: OpRecv, peer: l.p.rank, p: l.p, id: core.nextID, posted: core.now, anyDatatype: true,
		detached: true}
	h, _, _ := l.pair.Deferred()
	l.receiving = r
	acts, err := l.touchedPair().Recv(core.now, handshake.RecvOp{ID: r.id, Any: true, Tag: h.Tag}, core.pairActions.list)
	core.pairActions.list = acts
	if err != nil { // impossible: receiving was nil
		l.receiving = nil
		return false
	}
	l.discardReceiving()
	return true
}

// discardReceiving makes the pair drop the message that is arriving for a detached receive.
func (l *handshakeLink) discardReceiving() {
	l.receiving.dropsMessage = true
	l.touchedPair().DetachRecv(l.p.e.now, l.receiving.id)
}

// revokeRecv cancels a receive whose program no longer exists. It succeeds even if the sender is already cleared,
// provided that the peer's messages are numbered. The message stays with its sender.
func (l *handshakeLink) revokeRecv(r *Request) bool {
	e := l.p.e
	acts, ok := l.touchedPair().RevokeRecv(e.now, r.id, e.pairActions.list[:0])
	if e.pairActions.list = acts; ok {
		l.receiving = nil
	}
	l.perform(nil)
	return ok
}

// programEnded notes that all operations of a program were cancelled, and that the next program may use the rank.
// clean is as in Engine.ProgramEnded.
func (l *handshakeLink) programEnded(clean bool) {
	if r := l.receiving; r != nil && r.detached {
		if l.revokeRecv(r) {
			l.p.e.buffers.put(r.buf)
		} else {
			l.discardReceiving()
		}
	}
	if r := l.sending; r != nil && r.detached {
		r.dropsMessage = true
		l.expectReply()
	}
	if l.leftover.unanswered && !clean {
		l.expectReply()
	}
	l.leftover.unanswered = false
	if in := l.deferred; in != nil && l.isForEarlier() {
		l.p.e.matching.forComm(in.comm).RemoveUnexpected(in.handle)
		l.p.e.matching.inbounds.retire(in)
		l.discardNext()
	}
	l.perform(nil)
}

// unfinished returns the operation that an earlier program left unfinished, if any.
func (l *handshakeLink) unfinished() state.Unfinished {
	switch {
	case l.sending != nil && l.sending.dropsMessage:
		return state.UnfinishedSend
	case l.receiving != nil && l.receiving.dropsMessage:
		return state.UnfinishedRecv
	case l.isForEarlier():
		return state.UnfinishedNext
	}
	return state.UnfinishedNone
}

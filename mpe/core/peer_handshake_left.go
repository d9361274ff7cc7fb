package core

import (
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// leftover describes the operations that an earlier program left unfinished with a deployed node. The node continues
// them: it requests the DATA of a send, and sends messages for the program's receives, which the next program must not
// receive. Nothing but their order identifies these messages, so the engine discards at most as many as the earlier
// program could still have received.
type leftover struct {
	// receives is the number of the program's receives still without a message. replies is 1 if the node may answer a
	// message from the program, and 0 otherwise. since is the time of the last change of either.
	receives, replies int
	since             handshake.Instant
	// unanswered means that the program has received no message from the peer since it last sent one.
	unanswered bool
}

const (
	// leftoverTime is the time after the end of a program during which the node may still start a message for that
	// program. Afterwards the node has stopped retransmitting its SEND_REQUEST.
	leftoverTime = 4 * time.Second
	// leftoverBusyTime replaces leftoverTime while the node does not accept the next program's message: it may still be
	// executing a call for the earlier program.
	leftoverBusyTime = time.Minute
)

// isDeployed reports whether the peer is a deployed node, which executes one call at a time and cannot distinguish this
// rank's programs.
func (l *handshakeLink) isDeployed() bool { return l.p.cfg.Handshake.Peer.BlockingCalls }

// noteLeftRecv notes that a receive was cancelled because its program no longer exists. The peer's next message may
// still be meant for that receive.
func (l *handshakeLink) noteLeftRecv() {
	if l.isDeployed() {
		l.leftover.receives++
		l.leftover.since = l.p.e.now
	}
}

// detachSend continues a send whose program no longer exists, so that the peer can complete it. It reports false if the
// send is no longer in progress.
func (l *handshakeLink) detachSend(r *Request) bool {
	if !l.touchedPair().DetachSend(l.p.e.now, r.id) {
		return false
	}
	l.expectReply()
	return true
}

// expectReply notes that a deployed node may answer a program that no longer exists.
func (l *handshakeLink) expectReply() {
	if l.isDeployed() {
		l.leftover.replies, l.leftover.since = 1, l.p.e.now
	}
}

// onLeftSendDone handles the end of a send whose caller no longer exists. If the send succeeded, the peer may reply to
// it.
func (l *handshakeLink) onLeftSendDone(r *Request, err error) {
	if r.dropsMessage && err == nil {
		l.expectReply()
	}
}

// cancelLeftSend cancels the unfinished send of an earlier program, unless the peer has cleared it. The next program's
// send can replace it, because a deployed node keeps only one of their SEND_REQUESTs.
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

// isForEarlier reports whether the next message from the peer is presumably meant for an earlier program.
func (l *handshakeLink) isForEarlier() bool {
	if l.leftover.receives+l.leftover.replies == 0 {
		return false
	}
	age := l.p.e.now - l.leftover.since
	return age < leftoverTime || age < leftoverBusyTime && l.sending != nil && !l.sending.detached
}

// discardNext receives and drops the message whose SEND_REQUEST is deferred. It reports false if it must wait for a
// send in progress, which may show that the message does not exist.
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

// revokeRecv cancels a receive whose program no longer exists, so that the message stays with its sender. It succeeds
// even if the sender is already cleared, provided that the peer numbers its messages.
func (l *handshakeLink) revokeRecv(r *Request) bool {
	e := l.p.e
	acts, ok := l.touchedPair().RevokeRecv(e.now, r.id, e.pairActions.list[:0])
	if e.pairActions.list = acts; ok {
		l.receiving = nil
	}
	l.perform(nil)
	return ok
}

// programEnded prepares the link for the next program, after all operations of the last program were cancelled. clean
// is as in Engine.ProgramEnded.
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

// unfinished returns the kind of operation that an earlier program left unfinished, if any.
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

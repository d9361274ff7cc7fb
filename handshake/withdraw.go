package handshake

import (
	"errors"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// A zrlmpid revokes a SEND_REQUEST or CLEAR_TO_SEND to another zrlmpid by a packet of the same type whose call is
// BARRIER, which all other nodes drop. The size field of the revocation is the number of the SEND_REQUEST plus 1. A
// revocation is not acknowledged: if it is lost, the peer continues the message, and its next packet is answered by
// another revocation.

// requestNumbers holds the numbers that SEND_REQUESTs carry, and records whether the peer uses such numbers.
type requestNumbers struct {
	// next is the number that our next SEND_REQUEST carries. It equals the number of SEND_REQUESTs revoked so far.
	next uint32
	// revokedClear is the number plus 1 of the SEND_REQUEST whose CLEAR_TO_SEND we revoked last. It is 0 once we have
	// cleared another SEND_REQUEST.
	revokedClear uint32
	// usedByPeer is set if the peer has used numbers. unnumbered is the number of times that the peer answered a
	// numbered SEND_REQUEST without a number, and lastUnnumbered the time of the last such answer. unsupported is set
	// once there were enough of them to show that the peer uses no numbers.
	usedByPeer, unsupported bool
	unnumbered              int
	lastUnnumbered          Instant
}

// maxUnnumbered is the number of answers without a number after which the peer is assumed to use no numbers. A single
// such answer proves nothing, because it may be late.
const maxUnnumbered = 3

// answerSpacing is the minimum time between two answers without a number, if both are to count. Of two closer answers,
// one may be a duplicate.
const answerSpacing = 50 * time.Millisecond

// errRevoked is the error of a send that ended because the peer revoked its CLEAR_TO_SEND after the caller was gone.
var errRevoked = errors.New("the peer has revoked its CLEAR_TO_SEND")

// reset forgets whether the peer uses numbers: after a restart, it may run another version.
func (n *requestNumbers) reset() { n.usedByPeer, n.unsupported, n.unnumbered = false, false, 0 }

// usesNumbers reports whether to number SEND_REQUESTs. It is true until the peer has proved that it echoes no numbers.
func (p *Pair) usesNumbers() bool { return p.cfg.Peer.NumbersRequests && !p.numbers.unsupported }

// sendNumber returns the number of our SEND_REQUEST.
func (p *Pair) sendNumber() uint32 {
	if !p.usesNumbers() {
		return 0
	}
	return p.numbers.next
}

// answersRevoked reports whether a CLEAR_TO_SEND answers a SEND_REQUEST that we have revoked.
func (p *Pair) answersRevoked(now Instant, h protocol.Header) bool {
	numbers := &p.numbers
	switch {
	case !p.usesNumbers() || numbers.next == 0:
		return false
	case h.Size == numbers.next:
		numbers.usedByPeer = true
		return false
	case numbers.usedByPeer:
		return true
	}
	if p.send.state == WaitClear && (numbers.unnumbered == 0 || now-numbers.lastUnnumbered >= answerSpacing) {
		numbers.unnumbered, numbers.lastUnnumbered = numbers.unnumbered+1, now
	}
	numbers.unsupported = numbers.unnumbered == maxUnnumbered
	return !numbers.unsupported
}

// revokeRequest abandons the SEND_REQUEST of a message that ends, which the peer may have received. If the peer uses
// numbers, revokeRequest revokes the SEND_REQUEST and advances the number, so that the answer to the next SEND_REQUEST
// is recognized.
func (p *Pair) revokeRequest(send *sending, acts []Action) []Action {
	if !p.usesNumbers() {
		p.clearPending = true
		return acts
	}
	n := p.numbers.next
	p.numbers.next++
	return p.transmitRevocation(protocol.SendRequest, n, send.op.Tag, acts)
}

// transmitRevocation revokes the SEND_REQUEST with the given number, or the CLEAR_TO_SEND that answered it (P28). The
// size field is number + 1, because BARRIER with size 0 revokes nothing.
func (p *Pair) transmitRevocation(t protocol.Type, number uint32, tag uint8, acts []Action) []Action {
	return append(acts, Action{Kind: Transmit, Header: p.header(t, protocol.Barrier, number+1, tag)})
}

// isRevocation reports whether the packet revokes an earlier SEND_REQUEST or CLEAR_TO_SEND.
func (p *Pair) isRevocation(h protocol.Header) bool {
	return p.cfg.Peer.NumbersRequests && h.Size > 0 && (h.Type == protocol.SendRequest || h.Type == protocol.ClearToSend)
}

// onRevocation handles the peer's revocation (P28), which also proves that the peer uses numbers.
func (p *Pair) onRevocation(now Instant, header protocol.Header, acts []Action) []Action {
	p.numbers.usedByPeer, p.numbers.unsupported = true, false
	n := header.Size - 1
	switch s, r := &p.send, &p.recv; {
	case header.Type == protocol.ClearToSend && s.state == WaitAck && n == p.numbers.next:
		return p.onClearRevoked(now, header, acts)
	case header.Type == protocol.ClearToSend:
	case r.isActive() && r.requestNumber == n:
		return p.onRequestRevoked(now, header, acts)
	case p.deferred.valid && p.deferred.header.Type == protocol.SendRequest && p.deferred.header.Size == n:
		p.deferred, p.deferredMismatch = deferredHeader{}, false
		return append(acts, Action{Kind: Note, Event: Withdrawn, Header: header})
	}
	return append(acts, Action{Kind: Drop, Reason: ReasonStale, Header: header})
}

// onRequestRevoked ends a receive whose message was cleared but will not come, because the peer has revoked its
// SEND_REQUEST.
func (p *Pair) onRequestRevoked(now Instant, h protocol.Header, acts []Action) []Action {
	id := p.recv.op.ID
	acts = append(acts, Action{Kind: Note, ID: id, Event: Withdrawn, Header: h}, Action{Kind: Repost, ID: id})
	p.freeRecv()
	return p.resumeSend(now, acts)
}

// onClearRevoked handles the revocation of a CLEAR_TO_SEND. It sends SEND_REQUEST again, because the peer drops the
// DATA of this send. The new SEND_REQUEST has the next number, so that a duplicate of the revocation has no effect.
func (p *Pair) onClearRevoked(now Instant, h protocol.Header, acts []Action) []Action {
	send := &p.send
	acts = append(acts, Action{Kind: Note, ID: send.op.ID, Event: Withdrawn, Header: h})
	if send.detached {
		return p.endSend(now, errRevoked, acts)
	}
	p.numbers.next++
	send.stateSince, send.timeouts, send.rto, send.dataSent, send.cleared = now, 0, timer{}, false, false
	if send.state, send.deadline = Held, (timer{}); p.recv.isActive() {
		return p.transmitRequest(now, acts)
	}
	send.state, send.deadline = WaitClear, timerAfter(now, p.cfg.Timing.ClearDeadline)
	p.armSend(now, p.cfg.Timing.Clear)
	return p.transmitRequest(now, acts)
}

// onOtherRequest handles a SEND_REQUEST whose number differs from the cleared message's. A later number shows that the
// cleared message was revoked and the revocation was lost. With an earlier number, the SEND_REQUEST is a late
// duplicate.
func (p *Pair) onOtherRequest(now Instant, h protocol.Header, acts []Action) []Action {
	if int32(h.Size-p.recv.requestNumber) < 0 {
		return append(acts, Action{Kind: Drop, Reason: ReasonStale, Header: h})
	}
	acts = p.onRequestRevoked(now, h, acts)
	p.deferHeader(now, h)
	return acts
}

// RevokeRecv cancels a receive whose sender was already cleared, by revoking the CLEAR_TO_SEND. The peer keeps its
// message for another receive. If the peer is not known to support revocations, RevokeRecv does nothing and returns
// false.
func (p *Pair) RevokeRecv(now Instant, id ID, acts []Action) ([]Action, bool) {
	recv := &p.recv
	if !p.usesNumbers() || !recv.isActive() || recv.op.ID != id {
		return acts, false
	}
	if recv.state == Receiving {
		p.discardBytes, p.discardUntil = recv.remaining(), now+p.cfg.Timing.FragmentGap
	}
	n, tag := recv.requestNumber, recv.tag
	p.freeRecv()
	p.numbers.revokedClear = n + 1
	return p.resumeSend(now, p.transmitRevocation(protocol.ClearToSend, n, tag, acts)), true
}

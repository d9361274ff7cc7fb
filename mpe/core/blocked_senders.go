package core

import (
	"fmt"
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
)

// The extended profile delivers every message that it accepts from a program, as soon as a receive is posted. Until
// then, the message's header occupies memory at the peer. The engine therefore refuses a send for which the peer has no
// memory.

// PeerFullError is returned when a send is refused because too many messages to the peer wait for receives, or wait to
// be sent. It matches ErrFull.
type PeerFullError struct {
	Local, Peer int
	// Queued is the number of messages to the peer that wait to be sent, or 0 if they wait for receives at the peer.
	Queued int
}

// Error describes the waiting messages, and suggests a remedy.
func (e *PeerFullError) Error() string {
	if e.Queued > 0 {
		return fmt.Sprintf("rank %d has %d messages to rank %d that wait to be sent, and none of them was sent for "+
			"%v: wait for some first",
			e.Local, e.Queued, e.Peer, CreditTimeout)
	}
	return fmt.Sprintf("rank %d cannot hold another message from rank %d that waits for a receive, and has "+
		"matched none of them for %v: receive some first, or raise limits.unexpected (ZRLMPI_UNEXPECTED) of rank %d",
		e.Peer, e.Local, CreditTimeout, e.Peer)
}

// Is makes errors.Is(err, ErrFull) true.
func (e *PeerFullError) Is(target error) bool { return target == ErrFull }

// CreditTimeout limits how long the call that posts a send waits for memory at the peer. Waiting is worthwhile because
// the peer may already have freed memory, while the ACK that reports this is still in flight.
const CreditTimeout = time.Second

// tentativeSend is a send that was accepted although the peer may have no memory for its message, because its caller
// cannot wait, or because the peer's limits are not known yet.
type tentativeSend struct {
	id     extended.ID
	posted handshake.Instant
}

// isQueued reports whether no part of the send has been sent yet.
func (l *extendedLink) isQueued(s tentativeSend) bool {
	r := l.outbox.find(s.id).request
	return r != nil && r.posted == s.posted && l.conn.IsQueued(s.id)
}

// creditWait measures how long a sender has waited: since its message was posted, or since another message to the peer
// began, if that was later.
type creditWait struct {
	waitStart   handshake.Instant
	nextMessage uint32
}

// isOver reports whether a peer has confirmed that it has been full for CreditTimeout. Confirmation is necessary
// because a silent peer may have freed memory.
func (w *creditWait) isOver(l *extendedLink) bool {
	if next := l.conn.NextNumber(); next != w.nextMessage {
		w.nextMessage, w.waitStart = next, l.p.e.now
	}
	return l.conn.Fullness() == extended.CreditFull && l.conn.ConfirmedAt() >= w.waitStart+CreditTimeout
}

// refuseTentative forgets the tentative sends that have begun, and fails the others once they have waited too long.
func (l *extendedLink) refuseTentative() {
	p, core := l.p, l.p.e
	for len(l.tentative) > 0 {
		send := l.tentative[0]
		if l.isQueued(send) {
			l.creditWait.waitStart = max(l.creditWait.waitStart, send.posted)
			if !l.creditWait.isOver(l) {
				return
			}
			if r := l.outbox.find(send.id).request; l.cancel(r) {
				core.finish(r, fmt.Errorf("rank %d: %w", core.rank, &PeerFullError{Local: core.rank, Peer: p.rank}))
			}
		}
		l.tentative = l.tentative[1:]
	}
	l.tentative = nil
}

// BlockedSender is the caller of a send that waits for memory at its peer.
type BlockedSender struct {
	// Wake is called when the peer may have freed memory.
	Wake func()
	p    *peer
	// queued is the number of messages in the queue if the sender waits for the queue to shrink, and 0 otherwise.
	queued int
	wait   creditWait
	reason *PeerFullError // nil if the peer has memory now
}

// Register registers the caller of a send if the peer has no memory for the message; the caller then waits until
// MustWait reports false. Register returns nil if the peer has memory. It returns nil and the reason as err if it
// refused a message before and no operation of the program has completed since. A completed operation justifies another
// wait: it may be a message from the peer, or from a rank that knows that the peer has freed memory.
func (w *BlockedSenders) Register(peer int, now handshake.Instant) (sender *BlockedSender, err error) {
	p := w.core.peers.at(peer)
	why := p.fullError()
	if why == nil || p.refusedAt >= max(w.core.lastEndAt, 1) {
		return nil, p.noteRefusal(why, now)
	}
	sender = &BlockedSender{p: p, queued: why.Queued,
		wait: creditWait{waitStart: now, nextMessage: p.extended.conn.NextNumber()}, reason: why}
	w.senders = append(w.senders, sender)
	p.wantCredit(true)
	return sender, nil
}

// MustWait reports whether a sender should continue to wait at the time now.
func (w *BlockedSenders) MustWait(s *BlockedSender, now handshake.Instant) bool {
	s.reason = s.p.fullError()
	return s.reason != nil && w.core.state == running && !s.wait.isOver(s.p.extended) &&
		(s.reason.Queued == 0 || now < s.wait.waitStart+CreditTimeout)
}

// Finish ends the wait of a sender. It returns nil if the message may be sent, or the reason for refusing it.
func (w *BlockedSenders) Finish(sender *BlockedSender, now handshake.Instant) error {
	w.senders = slices.DeleteFunc(w.senders, func(other *BlockedSender) bool { return other == sender })
	sender.p.wantCredit(false)
	if w.core.state != running {
		return nil // Post refuses it
	}
	return sender.p.noteRefusal(sender.reason, now)
}

// noteRefusal records that a message of the program was refused for the reason why, or accepted if why is nil. It
// returns why as an error.
func (p *peer) noteRefusal(why *PeerFullError, now handshake.Instant) error {
	if why == nil {
		p.refusedAt = 0
		return nil
	}
	p.refusedAt = max(now, 1)
	return why
}

// fullError returns the reason why the program must not send the peer a message now, or nil.
func (p *peer) fullError() *PeerFullError {
	l := p.extended
	if l == nil {
		return nil
	}
	switch l.conn.Fullness() {
	case extended.CreditFull:
		return &PeerFullError{Local: p.e.rank, Peer: p.rank}
	case extended.QueueFull:
		return &PeerFullError{Local: p.e.rank, Peer: p.rank, Queued: l.conn.NumQueued()}
	}
	return nil
}

// wake wakes the callers that can send now. A caller waiting because of a full queue continues when the queue has
// shrunk to half.
func (w *BlockedSenders) wake() {
	for _, s := range w.senders {
		if l := s.p.extended; s.p.fullError() == nil && (s.queued == 0 || l.conn.NumQueued() <= s.queued/2) {
			w.core.wake(s.Wake)
		}
	}
}

// wantCredit makes the link ask the peer for its current limits while a caller waits for memory, even if no other
// packet is to be sent.
func (p *peer) wantCredit(wanted bool) {
	if l := p.extended; l != nil {
		l.touchedConn().WantCredit(wanted ||
			slices.ContainsFunc(p.e.BlockedSenders.senders, func(s *BlockedSender) bool { return s.p == p }))
	}
}

// BlockedSenders holds the callers that wait for memory at peers.
type BlockedSenders struct {
	core    *Core
	senders []*BlockedSender
}

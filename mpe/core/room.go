package core

import (
	"fmt"
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
)

// Every message that the extended profile accepts from a program arrives if a receive is posted for it. Its header
// may arrive before the receive is posted, and then takes memory at the peer. A send for which the peer has no
// memory is refused.

// NoRoomError is the error of a send that was refused because too many messages to the peer wait for
// receives, or to be sent. It matches ErrFull.
type NoRoomError struct {
	Local, Peer int
	// Queued is the number of messages to the peer that wait to be sent. If 0, they wait for receives at the peer.
	Queued int
}

// Error describes what is waiting where, and what to do.
func (e *NoRoomError) Error() string {
	if e.Queued > 0 {
		return fmt.Sprintf("rank %d has %d messages to rank %d that wait to be sent, and none of them was sent for "+
			"%v: wait for some first",
			e.Local, e.Queued, e.Peer, RoomPatience)
	}
	return fmt.Sprintf("rank %d has no room for another message from rank %d that waits for a receive, and has "+
		"matched none of them for %v: receive some first, or raise limits.unexpected (ZRLMPI_UNEXPECTED) of rank %d",
		e.Peer, e.Local, RoomPatience, e.Peer)
}

// Is makes errors.Is(err, ErrFull) true.
func (e *NoRoomError) Is(target error) bool { return target == ErrFull }

// RoomPatience is how long a send waits in its call for memory at the peer. The peer may just have freed some, and
// its ACK may be in flight.
const RoomPatience = time.Second

// unsureSend is a send of the program that was accepted although the peer may have no memory for it: its
// caller cannot wait, or the peer's limits are not known yet.
type unsureSend struct {
	id     extended.ID
	posted handshake.Instant
}

// waits reports whether the send still waits to be sent.
func (l *extendedLink) waits(s unsureSend) bool {
	r := l.outs.at(s.id).req
	return r != nil && r.posted == s.posted && l.conn.Queues(s.id)
}

// roomWait measures how long a sender has waited: since its message was posted, or since another message began.
type roomWait struct {
	since handshake.Instant
	next  uint32
}

// ended reports whether a peer is known to have been full for RoomPatience. A silent peer may have freed memory.
func (w *roomWait) ended(l *extendedLink) bool {
	if next := l.conn.Next(); next != w.next {
		w.next, w.since = next, l.p.e.at
	}
	return l.conn.Full() == extended.CreditFull && l.conn.Confirmed() >= w.since+RoomPatience
}

// refuseUnsure forgets the unsure sends that were sent, and refuses the others when their wait is over.
func (l *extendedLink) refuseUnsure() {
	p, e := l.p, l.p.e
	for len(l.unsure) > 0 {
		s := l.unsure[0]
		if l.waits(s) {
			l.roomWait.since = max(l.roomWait.since, s.posted)
			if !l.roomWait.ended(l) {
				return
			}
			if r := l.outs.at(s.id).req; l.cancel(r) {
				e.finish(r, fmt.Errorf("rank %d: %w", e.rank, &NoRoomError{Local: e.rank, Peer: p.rank}))
			}
		}
		l.unsure = l.unsure[1:]
	}
	l.unsure = nil
}

// Sender is the caller of a send that waits for memory at its peer.
type Sender struct {
	// Wake is called when the peer may have freed memory.
	Wake func()
	p    *peer
	// queued is the number of messages that were waiting to be sent, if the sender waits because of them, or 0.
	queued int
	wait   roomWait
	why    *NoRoomError // nil if there is memory now
}

// Want registers the caller of a send if the peer has no memory for the message. The caller may then wait until
// Wanted reports false. Want returns nil if the peer has memory. It also returns nil, with the reason as err, if a
// message was refused before and no operation of the program has completed since. If one has completed, the caller
// waits again: a message received since may be from the peer, or from a rank that knows that the peer has freed
// memory.
func (w *Rooms) Want(peer int, now handshake.Instant) (s *Sender, err error) {
	p := w.c.peers[peer]
	why := p.noRoom()
	if why == nil || p.refusedAt >= max(w.c.lastEnd, 1) {
		return nil, p.refuse(why, now)
	}
	s = &Sender{p: p, queued: why.Queued, wait: roomWait{since: now, next: p.extended.conn.Next()}, why: why}
	w.senders = append(w.senders, s)
	p.wantCredit(true)
	return s, nil
}

// Wanted reports whether a sender should continue to wait.
func (w *Rooms) Wanted(s *Sender, now handshake.Instant) bool {
	s.why = s.p.noRoom()
	return s.why != nil && w.c.state == running && !s.wait.ended(s.p.extended) &&
		(s.why.Queued == 0 || now < s.wait.since+RoomPatience)
}

// End ends the wait of a sender, and returns the reason why its message is refused, or nil.
func (w *Rooms) End(s *Sender, now handshake.Instant) error {
	w.senders = slices.DeleteFunc(w.senders, func(other *Sender) bool { return other == s })
	s.p.wantCredit(false)
	if w.c.state != running {
		return nil // Post refuses it
	}
	return s.p.refuse(s.why, now)
}

// refuse records whether a message of the program was refused, and returns the reason.
func (p *peer) refuse(why *NoRoomError, now handshake.Instant) error {
	if why == nil {
		p.refusedAt = 0
		return nil
	}
	p.refusedAt = max(now, 1)
	return why
}

// noRoom returns the reason why a program's message to a peer must not be sent now, or nil.
func (p *peer) noRoom() *NoRoomError {
	l := p.extended
	if l == nil {
		return nil
	}
	switch l.conn.Full() {
	case extended.CreditFull:
		return &NoRoomError{Local: p.e.rank, Peer: p.rank}
	case extended.QueueFull:
		return &NoRoomError{Local: p.e.rank, Peer: p.rank, Queued: l.conn.Queued()}
	}
	return nil
}

// wake wakes the callers that can send now. A caller that waits because of a full queue continues when the queue
// has shrunk to half.
func (w *Rooms) wake() {
	for _, s := range w.senders {
		if l := s.p.extended; s.p.noRoom() == nil && (s.queued == 0 || l.conn.Queued() <= s.queued/2) {
			w.c.wake(s.Wake)
		}
	}
}

// wantCredit makes the link ask the peer for its limits while a caller waits for memory, even if it sends nothing.
func (p *peer) wantCredit(wanted bool) {
	if l := p.extended; l != nil {
		l.machine().WantCredit(wanted ||
			slices.ContainsFunc(p.e.Rooms.senders, func(s *Sender) bool { return s.p == p }))
	}
}

// Rooms holds the callers that wait for memory at peers.
type Rooms struct {
	c       *Core
	senders []*Sender
}

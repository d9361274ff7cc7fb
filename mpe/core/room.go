package core

import (
	"fmt"
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
)

// What the extended profile accepts of a program arrives if a receive is posted for it: headers go ahead of receives,
// so the peer's memory bounds how many. A send for which it has none left is not accepted.

// NoRoomError is a send that was refused, as more messages to the peer than the limits allow wait for receives, or to
// be sent. It is an ErrFull.
type NoRoomError struct {
	Local, Peer int
	// Queued, if not 0, is how many messages to the peer wait to be sent. Otherwise they wait for receives at the peer.
	Queued int
}

// Error says what waits where, and what to do.
func (e *NoRoomError) Error() string {
	if e.Queued > 0 {
		return fmt.Sprintf("rank %d has %d messages to rank %d that wait to be sent, and none of them was sent for %v: wait for some first",
			e.Local, e.Queued, e.Peer, RoomPatience)
	}
	return fmt.Sprintf("rank %d has no room for another message from rank %d that waits for a receive, and has matched none of them for %v: receive some first, or raise limits.unexpected (ZRLMPI_UNEXPECTED) of rank %d",
		e.Peer, e.Local, RoomPatience, e.Peer)
}

// Is makes errors.Is(err, ErrFull) true.
func (e *NoRoomError) Is(target error) bool { return target == ErrFull }

// RoomPatience is how long a send waits for room, in its call: the peer may just have made some, and its ACK be on the
// way.
const RoomPatience = time.Second

// unsureSend is a send of the program that was accepted although there may be no room for it: by a caller that cannot
// wait, or before the peer has said how much there is.
type unsureSend struct {
	id     extended.ID
	posted handshake.Instant
}

// waits reports whether the send still waits to be sent.
func (l *extendedLink) waits(s unsureSend) bool {
	r := l.outs.at(s.id).req
	return r != nil && r.posted == s.posted && l.conn.Queues(s.id)
}

// roomWait is from when a sender waits for room: since its message was posted, or another one began.
type roomWait struct {
	since handshake.Instant
	next  uint32
}

// ended reports whether a peer is known to have had no room for RoomPatience. Its silence says nothing of its room.
func (w *roomWait) ended(l *extendedLink) bool {
	if next := l.conn.Next(); next != w.next {
		w.next, w.since = next, l.p.e.at
	}
	return l.conn.Full() == extended.CreditFull && l.conn.Confirmed() >= w.since+RoomPatience
}

// refuseUnsure forgets the unsure sends that were sent, and refuses those whose time has come.
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

// Sender is the caller of a send that waits for room at its peer.
type Sender struct {
	// Wake is called when there may be some.
	Wake func()
	p    *peer
	// queued is how many messages waited to be sent if that is why, or 0.
	queued int
	wait   roomWait
	why    *NoRoomError // nil if there is room
}

// Want returns the caller of a send for whose message its peer has no room, which may wait for some until
// RoomWanted reports false. It is nil if there is room, and if a message was refused before and no operation of the
// program has ended since; then err is why. A message that the program has received since may be the peer's, or that of
// a rank which knows that the peer has made room.
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

// Wanted reports whether a sender is to go on waiting.
func (w *Rooms) Wanted(s *Sender, now handshake.Instant) bool {
	s.why = s.p.noRoom()
	return s.why != nil && w.c.state == running && !s.wait.ended(s.p.extended) && (s.why.Queued == 0 || now < s.wait.since+RoomPatience)
}

// End ends the wait of a sender, and returns why its message is refused, or nil.
func (w *Rooms) End(s *Sender, now handshake.Instant) error {
	w.senders = slices.DeleteFunc(w.senders, func(other *Sender) bool { return other == s })
	s.p.wantCredit(false)
	if w.c.state != running {
		return nil // which refuses it
	}
	return s.p.refuse(s.why, now)
}

// refuse notes whether a message of the program was refused, and returns why.
func (p *peer) refuse(why *NoRoomError, now handshake.Instant) error {
	if why == nil {
		p.refusedAt = 0
		return nil
	}
	p.refusedAt = max(now, 1)
	return why
}

// noRoom returns why a program's message to a peer is not to be sent now, or nil.
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

// wake wakes the callers for which there is room now: not for one message only, if others wait to be sent.
func (w *Rooms) wake() {
	for _, s := range w.senders {
		if l := s.p.extended; s.p.noRoom() == nil && (s.queued == 0 || l.conn.Queued() <= s.queued/2) {
			w.c.wake(s.Wake)
		}
	}
}

// wantCredit has the peer asked for its limits while a caller waits for room, also if it sends nothing.
func (p *peer) wantCredit(wanted bool) {
	if l := p.extended; l != nil {
		l.machine().WantCredit(wanted || slices.ContainsFunc(p.e.Rooms.senders, func(s *Sender) bool { return s.p == p }))
	}
}

// Rooms has the callers that wait for room at peers.
type Rooms struct {
	c       *Core
	senders []*Sender
}

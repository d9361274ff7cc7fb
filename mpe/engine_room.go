package mpe

import (
	"context"

	"github.com/zrlmpi/zrlmpid/handshake"
)

// awaitRoom waits until a peer has room for another message of the program, or is known to have had none for
// roomPatience. It does not wait if a message was refused before and no operation of the program has ended since: a
// message that the program has received since may be the peer's, or that of a rank which knows that the peer has made
// room. The lock is held; it is not while this waits.
func (e *Engine) awaitRoom(p *peer) error {
	err := p.noRoom()
	if err == nil || p.refusedAt >= max(e.lastEnd, 1) {
		return p.refuse(e.now(), err)
	}
	s := &sender{p: p, queued: err.Queued, found: make(chan struct{}, 1)}
	e.senders = append(e.senders, s)
	p.wantRoom(true)
	l := p.extended
	w := roomWait{since: e.now(), next: l.conn.Next()}
	for err != nil && e.state == running {
		if w.ended(l) || err.Queued > 0 && e.now() >= w.since+roomPatience {
			break
		}
		ctx, cancel := context.WithTimeout(context.Background(), roomPatience/4)
		e.begin(e.now())
		e.unlock()
		_ = e.Await(ctx, s.found) // when ctx is done, the peer may have said something
		cancel()
		e.lock()
		err = p.noRoom()
	}
	for i := range e.senders {
		if e.senders[i] == s {
			e.senders = append(e.senders[:i], e.senders[i+1:]...)
			break
		}
	}
	p.wantRoom(false)
	if e.state != running {
		return nil // which refuses it
	}
	return p.refuse(e.now(), err)
}

// refuse notes whether a message of the program was refused, and returns why.
func (p *peer) refuse(now handshake.Instant, why *NoRoomError) error {
	if why == nil {
		p.refusedAt = 0
		return nil
	}
	p.refusedAt = max(now, 1)
	return why
}

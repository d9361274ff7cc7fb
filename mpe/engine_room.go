package mpe

import "context"

// awaitRoom waits until a peer has room for another message of the program, or is known to have had none for
// roomPatience; and not at all if it had none at the end of the last such wait, and has had none since. The lock is
// held; it is not while this waits.
func (e *Engine) awaitRoom(p *peer) error {
	err := p.noRoom()
	if err == nil || p.refuses {
		return p.refuse(err)
	}
	s := &sender{p: p, queued: err.Queued, found: make(chan struct{}, 1)}
	e.senders = append(e.senders, s)
	p.wantRoom(true)
	l := p.link.(*extendedLink)
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
	return p.refuse(err)
}

// refuse notes whether the program's last message was refused, and returns why.
func (p *peer) refuse(why *NoRoomError) error {
	p.refuses = why != nil
	if why == nil {
		return nil
	}
	return why
}

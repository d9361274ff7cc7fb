package mpe

import (
	"context"
	"errors"
)

// awaitRoom waits until a peer has room for another message of the program, for roomPatience, and not at all if it had
// none at the end of the last such wait, and has had none since. The lock is held; it is not while this waits.
func (e *Engine) awaitRoom(p *peer) error {
	err := p.noRoom()
	if err == nil || p.refuses {
		p.refuses = err != nil
		return err
	}
	s := &sender{p: p, found: make(chan struct{}, 1)}
	if full, ok := errors.AsType[*NoRoomError](err); ok {
		s.queued = full.Queued
	}
	e.senders = append(e.senders, s)
	p.wantRoom(true)
	ctx, cancel := context.WithTimeout(context.Background(), roomPatience)
	defer cancel()
	for err != nil && ctx.Err() == nil && e.state == running {
		e.begin(e.now())
		e.unlock()
		_ = e.Await(ctx, s.found) // when ctx is done, so is the loop
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
	p.refuses = err != nil
	return err
}

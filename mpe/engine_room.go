package mpe

import "context"

// awaitRoom waits until a peer has room for another message of the program, or is known to have had none for
// roomPatience. The lock is held; it is not while this waits.
func (e *Engine) awaitRoom(peer int) error {
	s, err := e.core.wantRoom(peer, e.now())
	if s == nil {
		return err
	}
	found := make(chan struct{}, 1)
	s.Wake = func() { notify(found) }
	for e.core.roomWanted(s, e.now()) {
		ctx, cancel := context.WithTimeout(context.Background(), roomPatience/4)
		e.core.begin(e.now())
		e.unlock()
		_ = e.Await(ctx, found) // when ctx is done, the peer may have said something
		cancel()
		e.lock()
	}
	return e.core.endRoom(s, e.now())
}

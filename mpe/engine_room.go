package mpe

import (
	"context"

	"github.com/zrlmpi/zrlmpid/mpe/core"
)

// awaitRoom waits until a peer has room for another message of the program, or is known to have had none for
// core.RoomPatience. The engine's lock is held; it is not while this waits.
func awaitRoom(e *Engine, peer int) error {
	s, err := e.core.Rooms.Want(peer, e.clock.now())
	if s == nil {
		return err
	}
	found := make(chan struct{}, 1)
	s.Wake = func() { notify(found) }
	for e.core.Rooms.Wanted(s, e.clock.now()) {
		ctx, cancel := context.WithTimeout(context.Background(), core.RoomPatience/4)
		e.core.Begin(e.clock.now())
		e.unlock()
		_ = e.Await(ctx, found) // when ctx is done, the peer may have said something
		cancel()
		e.lock()
	}
	return e.core.Rooms.End(s, e.clock.now())
}

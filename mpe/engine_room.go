package mpe

import (
	"context"

	"github.com/zrlmpi/zrlmpid/mpe/core"
)

// awaitRoom waits until a peer has memory for another message of the program, or is known to have been full for
// core.RoomPatience. The caller holds the engine's lock; awaitRoom releases it while it waits.
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
		_ = e.Await(ctx, found) // when ctx is done, the peer may still have answered
		cancel()
		e.lock()
	}
	return e.core.Rooms.End(s, e.clock.now())
}

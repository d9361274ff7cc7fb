package mpe

import (
	"context"

	"github.com/zrlmpi/zrlmpid/mpe/core"
)

// awaitCredit waits until a peer has memory for another message of the program, or is known to have been full for
// core.CreditTimeout. The caller holds the engine's lock; awaitCredit releases it while it waits.
func awaitCredit(e *Engine, peer int) error {
	s, err := e.core.BlockedSenders.Register(peer, e.clock.now())
	if s == nil {
		return err
	}
	found := make(chan struct{}, 1)
	s.Wake = func() { notify(found) }
	for e.core.BlockedSenders.MustWait(s, e.clock.now()) {
		ctx, cancel := context.WithTimeout(context.Background(), core.CreditTimeout/4)
		e.core.Begin(e.clock.now())
		e.unlock()
		_ = e.Await(ctx, found) // when ctx is done, the peer may still have answered
		cancel()
		e.lock()
	}
	return e.core.BlockedSenders.Finish(s, e.clock.now())
}

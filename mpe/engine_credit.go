package mpe

import (
	"context"

	"github.com/zrlmpi/zrlmpid/mpe/core"
)

// awaitCredit waits until a peer has memory for another message from the program. It fails if the peer has had none for
// core.CreditTimeout. The caller holds the engine's lock; awaitCredit releases it while it waits.
func awaitCredit(engine *Engine, peer int) error {
	sender, err := engine.core.BlockedSenders.Register(peer, engine.clock.now())
	if sender == nil {
		return err
	}
	found := make(chan struct{}, 1)
	sender.Wake = func() { notify(found) }
	for engine.core.BlockedSenders.MustWait(sender, engine.clock.now()) {
		ctx, cancel := context.WithTimeout(context.Background(), core.CreditTimeout/4)
		engine.core.Begin(engine.clock.now())
		engine.unlock()
		_ = engine.Await(ctx, found) // when ctx is done, the peer may still have answered
		cancel()
		engine.lock()
	}
	return engine.core.BlockedSenders.Finish(sender, engine.clock.now())
}

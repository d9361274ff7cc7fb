package core

import "github.com/zrlmpi/zrlmpid/handshake"

// Keeper stores the state of a peer that a rank needs after its process is replaced. It is called during
// events of the engine.
type Keeper interface {
	// Restore returns the state stored by an earlier process. It is called once; now is the current time.
	Restore(now handshake.Instant) handshake.SavedState
	// Keep stores k. The engine calls it before it sends packets that depend on k, so it must be quick.
	Keep(k *handshake.SavedState)
}

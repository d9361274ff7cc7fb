package core

import "github.com/zrlmpi/zrlmpid/handshake"

// Keeper stores the state of a peer that a rank needs after its process is replaced. The engine calls its methods
// during events, with its lock held.
type Keeper interface {
	// Restore returns the state stored by an earlier process. The engine calls it once, when it starts at the time now.
	Restore(now handshake.Instant) handshake.SavedState
	// Keep stores k. It must be quick, because the engine calls it before it sends packets that depend on k.
	Keep(k *handshake.SavedState)
}

package core

import "github.com/zrlmpi/zrlmpid/handshake"

// Keeper keeps the state of a peer that a rank needs when its process is replaced. It is called during events of the
// engine.
type Keeper interface {
	// Restore returns the state that an earlier process kept. It is called once, now being the present.
	Restore(now handshake.Instant) handshake.Kept
	// Keep keeps k, before the packets are sent that depend on it. It must be quick.
	Keep(k *handshake.Kept)
}

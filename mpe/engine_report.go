package mpe

import (
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Peer describes a rank of the cluster.
func (e *Engine) Peer(rank int) (PeerInfo, error) {
	e.mu.Lock() // Reconfigure may change the address
	defer e.mu.Unlock()
	return e.core.PeerInfo(rank)
}

// Snapshot returns the state of the rank.
func (e *Engine) Snapshot() state.Engine {
	e.lock()
	s := e.core.Snapshot()
	e.unlock()
	s.Describe()
	return s
}

// Depths returns the lengths of the rank's queues. It is cheap enough to call a hundred times a second.
func (e *Engine) Depths() state.Depths {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.core.Depths()
}

// Waits returns the operations that have waited for at least the given time: messages announced or in
// transfer, and the oldest posted receive of each source.
func (e *Engine) Waits(atLeast time.Duration) []Waiting {
	e.lock()
	defer e.unlock()
	return e.core.Waits(atLeast)
}

// Unfinished returns the messages that were in progress when Close ran out of time, as they were then.
func (e *Engine) Unfinished() []Waiting {
	e.lock()
	defer e.unlock()
	return e.unfinished
}

// Counters calls rank once, and then peer for every peer, each time with the engine's lock held, so that counts
// kept by the Observer do not change during the call. The functions must be quick, must not call the engine, and
// must not retain their arguments.
func (e *Engine) Counters(rank func(*state.RankCounters), peer func(*state.PeerCounters)) {
	posted := make([]handshake.Instant, e.size) // 0 for none
	var rc state.RankCounters
	e.lock()
	e.core.RankCounters(&rc, posted)
	rank(&rc)
	e.mu.Unlock()
	var pc state.PeerCounters
	for i := range e.size {
		e.lock()
		if e.core.PeerCounters(&pc, i) {
			if !pc.OldestRecv.Waits && posted[i] != 0 {
				pc.OldestRecv = state.OldestWait{Waits: true, Awaited: protocol.SendRequest,
					Elapsed: e.core.Now() - posted[i]}
			}
			peer(&pc)
		}
		e.mu.Unlock()
	}
}

// PeerCounters calls visit for one peer, as Counters calls its function peer. It does nothing if rank is no peer.
// The oldest receive counts only receives that a message has matched.
func (e *Engine) PeerCounters(rank int, visit func(*state.PeerCounters)) {
	if rank < 0 || rank >= e.size {
		return
	}
	var pc state.PeerCounters
	e.lock()
	defer e.unlock()
	if e.core.PeerCounters(&pc, rank) {
		visit(&pc)
	}
}

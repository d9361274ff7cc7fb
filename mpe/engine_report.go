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

// Waits returns the operations that have been pending for at least the given time: announced messages, messages in
// transfer, and the oldest posted receive from each source.
func (e *Engine) Waits(atLeast time.Duration) []Waiting {
	e.lock()
	defer e.unlock()
	return e.core.Waits(atLeast)
}

// Unfinished returns the messages that were still in progress when Close's context was done. They are described as they
// were at that time.
func (e *Engine) Unfinished() []Waiting {
	e.lock()
	defer e.unlock()
	return e.unfinished
}

// Counters calls rank once, and then peer for every peer. It holds the engine's lock during each call, so that the
// Observer's own counts do not change meanwhile. The functions must be quick, must not call the engine, and must not
// retain their arguments.
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

// PeerCounters calls visit for one peer, in the same way as Counters calls peer. It is a no-op if rank is not a peer.
// Unlike in Counters, OldestRecv ignores receives that no message has matched.
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

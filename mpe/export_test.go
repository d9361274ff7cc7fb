package mpe

import (
	"slices"

	"github.com/zrlmpi/zrlmpid/mpe/core"
)

// Waiting returns the number of requests and probes with sleeping callers, according to the engine.
func (e *Engine) Waiting() int { return int(e.group.Waiting.Load()) }

// Placement returns the generation of the placement.
func (e *Engine) Placement() uint32 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.placements.generation
}

// Revoke revokes a placement that belongs to no request.
func (e *Engine) Revoke() {
	e.mu.Lock()
	defer e.mu.Unlock()
	(*effects)(e).Revoke(1 - e.rank)
}

// ArrivedIn processes packets whose payload is in a placement of the given generation.
func (e *Engine) ArrivedIn(tr Transport, batch []RxPacket, gen uint32) {
	e.receiveBatch(slices.Index(e.transports, tr), batch, gen)
}

// Idle reports whether no peer has a deadline, so that no timer is set or will be set.
func (e *Engine) Idle() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.tickAt.Load() == int64(core.Never) && e.core.End().Deadline == core.Never
}

// Lock acquires the engine's lock, and returns the function that releases it.
func Lock(e *Engine) (unlock func()) {
	e.mu.Lock()
	return e.mu.Unlock
}

// Deliver processes packets as if they came from the first transport.
func (e *Engine) Deliver(batch ...RxPacket) { e.receiveBatch(0, batch, 0) }

// Calls returns the number of calls that callers have made.
func (e *Engine) Calls() uint32 { return (*owner)(e).Calls() }

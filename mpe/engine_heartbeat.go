package mpe

import (
	"context"
	"fmt"

	"github.com/zrlmpi/zrlmpid/internal/ctxerr"
)

// Heartbeat returns nil if the engine is alive: before ctx is done, the engine's lock must become available, the timer
// or a polling caller must handle timeouts, and the poller that wakes the engine for packets must respond. A closed
// engine counts as alive.
func (e *Engine) Heartbeat(ctx context.Context) error {
	ticked := make(chan struct{})
	locked := make(chan struct{})
	go func() { // leaks if the lock is never released
		e.lock()
		defer e.unlock()
		close(locked)
		if e.core.IsClosed() {
			close(ticked)
			return
		}
		e.heartbeats = append(e.heartbeats, ticked)
		e.tickAt.Store(int64(e.core.Now()))
		(*owner)(e).Armed()
	}()
	select {
	case <-ticked:
		if err := e.group.Heartbeat(ctx); err != nil {
			return fmt.Errorf("rank %d: %w", e.rank, err)
		}
		return nil
	case <-ctx.Done():
	}
	select {
	case <-locked:
		return fmt.Errorf("rank %d: no goroutine has handled timeouts: %w", e.rank, ctxerr.Cause(ctx))
	default:
		return fmt.Errorf("rank %d: its lock is not released: %w", e.rank, ctxerr.Cause(ctx))
	}
}

// heartbeats holds one channel for each Heartbeat call that is waiting for a tick.
type heartbeats []chan struct{}

// notify wakes the callers of Heartbeat after a tick.
func (h *heartbeats) notify() {
	for _, ticked := range *h {
		close(ticked)
	}
	*h = nil
}

package mpe

import (
	"context"
	"fmt"
)

// Pulse reports whether the engine is alive: whether its lock can be had, and whoever
// looks after its time-outs, be it who looks for packets or the timer, does so before
// ctx is done, and so does what wakes it when packets arrive. A closed engine is as alive as it has to be.
func (e *Engine) Pulse(ctx context.Context) error {
	ticked := make(chan struct{})
	locked := make(chan struct{})
	go func() { // which stays if the lock cannot be had
		e.lock()
		defer e.unlock()
		close(locked)
		if e.state == closed {
			close(ticked)
			return
		}
		e.pulses = append(e.pulses, ticked)
		e.due.Store(int64(e.at))
		e.setTimer()
	}()
	select {
	case <-ticked:
		if err := e.group.Pulse(ctx); err != nil {
			return fmt.Errorf("rank %d: %w", e.rank, err)
		}
		return nil
	case <-ctx.Done():
	}
	select {
	case <-locked:
		return fmt.Errorf("rank %d: nobody has looked after time-outs: %w", e.rank, context.Cause(ctx))
	default:
		return fmt.Errorf("rank %d: its lock is not given back: %w", e.rank, context.Cause(ctx))
	}
}

// beat tells those who ask that there was a tick. The lock is held.
func (e *Engine) beat() {
	for _, ticked := range e.pulses {
		close(ticked)
	}
	e.pulses = nil
}

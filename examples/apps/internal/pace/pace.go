// Package pace makes a rank as slow as a processor that is much slower, by waiting for as long as that
// processor would take. The waits of several ranks overlap, even if there are fewer cores than ranks. The
// package must never change the result of a computation.
package pace

import (
	"context"
	"time"
)

// MaxOperation is the longest time that an operation may take.
const MaxOperation = time.Millisecond

// Processor is a model of a slow processor. The zero Processor does not wait.
type Processor struct {
	// Operation is the time for a multiplication with an addition.
	Operation time.Duration
	// pendingWait is the time that Spend has yet to wait for. It is negative if the last wait took too long, which
	// shortens the next one.
	pendingWait time.Duration
}

// Spend waits for the time that the given number of operations takes. If ctx is done first, it returns the
// cause.
func (p *Processor) Spend(ctx context.Context, operations int) error {
	if p.pendingWait += time.Duration(operations) * p.Operation; p.pendingWait <= 0 {
		return nil
	}
	start := time.Now()
	select {
	case <-time.After(p.pendingWait):
		p.pendingWait -= time.Since(start)
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

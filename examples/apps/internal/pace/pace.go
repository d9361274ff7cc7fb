// Package pace makes a rank as slow as a processor that is much slower, by waiting for as long as that would take. The
// waits of ranks overlap, even if there are fewer cores than ranks. It must never change the result of a computation.
package pace

import (
	"context"
	"time"
)

// Longest is the maximum time of an operation.
const Longest = time.Millisecond

// Processor is a model of a slow processor. The zero Processor does not wait.
type Processor struct {
	// Operation is the time of a multiplication with an addition.
	Operation time.Duration
	// owed is the time that is left to wait. It is negative after a wait that took too long, which shortens the next
	// one.
	owed time.Duration
}

// Spend waits for the time of operations. If ctx is done first, it returns the cause.
func (p *Processor) Spend(ctx context.Context, operations int) error {
	if p.owed += time.Duration(operations) * p.Operation; p.owed <= 0 {
		return nil
	}
	start := time.Now()
	select {
	case <-time.After(p.owed):
		p.owed -= time.Since(start)
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

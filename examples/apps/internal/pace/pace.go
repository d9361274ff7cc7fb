// Package pace makes a rank as slow as a processor that is much slower: it waits as long
// as that one would take. The waits of ranks overlap, also where there are fewer cores than
// ranks. It must never change what is computed.
package pace

import (
	"context"
	"time"
)

// Longest is the longest time of an operation.
const Longest = time.Millisecond

// Processor is what a rank is to be as slow as. The zero Processor is as fast as can be.
type Processor struct {
	// Operation is how long a multiplication with an addition takes.
	Operation time.Duration
	// owed is how long there is still to wait. It is less than 0 after a wait that
	// was longer than asked for: the next one makes up for it.
	owed time.Duration
}

// Spend waits as long as operations take, or until ctx ends, and then returns its cause.
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

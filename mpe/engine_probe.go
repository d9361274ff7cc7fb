package mpe

import (
	"context"
	"fmt"
)

// Probe finds a message that a receive with these would get, without
// receiving it. With wait set it waits for one until ctx ends; the error is then
// ctx's.
func (e *Engine) Probe(ctx context.Context, m Match, wait bool) (Status, bool, error) {
	if err := e.check(&Operation{Kind: OpRecv, Peer: m.Source, Tag: m.Tag, Comm: m.Comm}); err != nil {
		return Status{}, false, err
	}
	var mine *probe
	polled := false
	e.lock()
	for {
		if e.state != running {
			e.endProbe(mine)
			e.mu.Unlock()
			return Status{}, false, fmt.Errorf("rank %d: %w", e.rank, ErrClosed)
		}
		if st, ok := e.found(m); ok {
			e.endProbe(mine)
			e.mu.Unlock()
			return st, true, nil
		}
		if mine != nil && mine.err != nil {
			e.endProbe(mine)
			e.mu.Unlock()
			return Status{}, false, fmt.Errorf("rank %d: %w", e.rank, mine.err)
		}
		if err := e.noSender(m.Source, m.Comm); err != nil {
			e.endProbe(mine)
			e.mu.Unlock()
			return Status{}, false, fmt.Errorf("rank %d: %w", e.rank, err)
		}
		if !wait && polled {
			e.mu.Unlock()
			return Status{}, false, nil
		}
		if !wait {
			e.mu.Unlock()
			e.PollOnce()
			polled = true
			e.lock()
			continue
		}
		if mine == nil {
			mine = &probe{Match: m, found: make(chan struct{}, 1)}
			e.probes = append(e.probes, mine)
		}
		e.mu.Unlock()
		err := e.Await(ctx, mine.found)
		e.lock()
		if err != nil {
			e.endProbe(mine)
			e.mu.Unlock()
			return Status{}, false, fmt.Errorf("rank %d waits for a message%s to probe: %w", e.rank, describeMatch(m), err)
		}
	}
}

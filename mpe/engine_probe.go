package mpe

import (
	"context"
	"fmt"

	"github.com/zrlmpi/zrlmpid/mpe/core"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// Probe returns the status of the message that a receive with match would match, without receiving the message. If wait
// is set, Probe waits for such a message; if ctx is done first, it returns an error that wraps the cause.
func (e *Engine) Probe(ctx context.Context, match Match, wait bool) (Status, bool, error) {
	if err := e.core.Check(&Operation{Kind: OpRecv, Peer: match.Source, Tag: match.Tag, Comm: match.Comm}); err != nil {
		return Status{}, false, err
	}
	var mine *core.Probe
	var found chan struct{}
	polled := false
	e.lock()
	for {
		if !e.core.IsRunning() {
			e.core.Probes.Remove(mine)
			e.unlock()
			return Status{}, false, fmt.Errorf("rank %d: %w", e.rank, ErrClosed)
		}
		if st, ok := e.core.Probes.Find(match); ok {
			e.core.Probes.Remove(mine)
			e.unlock()
			return st, true, nil
		}
		if mine != nil && mine.Err != nil {
			e.core.Probes.Remove(mine)
			e.unlock()
			return Status{}, false, fmt.Errorf("rank %d: %w", e.rank, mine.Err)
		}
		if err := e.core.CheckSender(match.Source, match.Comm); err != nil {
			e.core.Probes.Remove(mine)
			e.unlock()
			return Status{}, false, fmt.Errorf("rank %d: %w", e.rank, err)
		}
		if !wait && polled {
			e.unlock()
			return Status{}, false, nil
		}
		if !wait {
			e.unlock()
			e.PollOnce()
			polled = true
			e.lock()
			continue
		}
		if mine == nil {
			wake := make(chan struct{}, 1) // found itself would escape to the heap, even without wait
			found, mine = wake, &core.Probe{Match: match, Wake: func() { notify(wake) }}
			e.core.Probes.Add(mine)
		}
		e.unlock()
		err := e.Await(ctx, found)
		e.lock()
		if err != nil {
			e.core.Probes.Remove(mine)
			e.unlock()
			return Status{}, false, fmt.Errorf("rank %d waits for a message%s to probe: %w", e.rank,
				state.DescribeMatch(match.Source, match.Tag, match.Comm), err)
		}
	}
}

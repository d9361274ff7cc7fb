package mpe

import (
	"context"
	"fmt"
)

// AskReports asks other ranks for their reports over the links to them (E53). ranks must be ascending. AskReports waits
// until all have answered, but for at most a second, and returns one entry per rank, in the same order. The error
// matches ErrRank, or is the cause of ctx.
func (e *Engine) AskReports(ctx context.Context, ranks []int) ([]PeerReport, error) {
	for i, rank := range ranks {
		if err := e.core.CheckRank(rank); err != nil {
			return nil, err
		}
		if rank == e.rank || i > 0 && rank <= ranks[i-1] {
			return nil, fmt.Errorf("rank %d: %w: other ranks are asked, in ascending order", rank, ErrRank)
		}
	}
	e.lock()
	done := make(chan struct{})
	question := e.core.Reports.Ask(ranks, func() { close(done) })
	e.unlock()
	err := e.Await(ctx, done)
	e.lock()
	defer e.unlock()
	e.core.Reports.Cancel(question)
	if err != nil {
		return nil, err
	}
	return question.Reports, nil
}

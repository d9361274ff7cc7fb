package mpe

import (
	"context"
	"fmt"
)

// AskReports asks other ranks for their reports, over the links to them (E53), and waits until all have answered, but not for longer than a second. It returns an entry for each
// of the ranks, in their order. The error matches ErrRank, or is the cause of ctx.
func (e *Engine) AskReports(ctx context.Context, ranks []int) ([]PeerReport, error) {
	for i, rank := range ranks {
		if err := e.checkRank(rank); err != nil {
			return nil, err
		}
		if rank == e.rank || i > 0 && rank <= ranks[i-1] {
			return nil, fmt.Errorf("rank %d: %w: other ranks are asked, in ascending order", rank, ErrRank)
		}
	}
	e.lock()
	q := e.ask(ranks)
	e.unlock()
	err := e.Await(ctx, q.done)
	e.lock()
	defer e.unlock()
	q.forget(&e.core)
	if err != nil {
		return nil, err
	}
	return q.reports, nil
}

// report implements driver. A report takes the lock, and others: a goroutine makes it.
func (e *Engine) report(make func() []byte) {
	e.goroutines.Go(func() {
		text := make()
		e.lock()
		defer e.unlock()
		e.reportMade(text)
	})
}

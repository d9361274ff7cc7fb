package node

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/jobs"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// askTimeout bounds a query of other ranks. By the protocol, it ends within a second (E53) if the engine runs.
const askTimeout = 2 * time.Second

// AskReports asks other ranks, in ascending order, for their public state, and returns an entry for each.
func (r *Rank) AskReports(ctx context.Context, ranks []int) []state.AskResult {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	asked := make([]state.AskResult, len(ranks))
	reports, err := r.Engine.AskReports(ctx, ranks)
	for i, rank := range ranks {
		a := &asked[i]
		a.Rank, a.AskedBy = rank, r.Self.Rank
		if err == nil {
			if reports[i].Err == nil {
				a.Report, reports[i].Err = state.DecodePublic(reports[i].Report, rank, len(r.Config.Ranks))
			}
			if reports[i].Err != nil {
				a.Reason, a.Unanswered = reports[i].Err.Error(), errors.Is(reports[i].Err, mpe.ErrNoReport)
			}
			continue
		}
		a.Reason = err.Error()
	}
	return asked
}

// remoteRanks returns the ranks of the cluster that do not run on this host.
func (r *Rank) remoteRanks() (ranks []int) {
	local := jobs.Ranks(r.Directory)
	for rank := range r.Config.Ranks {
		if !slices.Contains(local, rank) {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

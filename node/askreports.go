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

// askTime bounds a query of other ranks. By the protocol, it ends within a second (E53) if the engine runs.
const askTime = 2 * time.Second

// AskReports asks other ranks, in ascending order, for their public state, and returns an entry for each.
func (r *Rank) AskReports(ctx context.Context, ranks []int) []state.Asked {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	asked := make([]state.Asked, len(ranks))
	reports, err := r.Engine.AskReports(ctx, ranks)
	for i, rank := range ranks {
		a := &asked[i]
		a.Rank, a.By = rank, r.Self.Rank
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

// elsewhere returns the ranks of the cluster that do not run on this host.
func (r *Rank) elsewhere() (ranks []int) {
	local := jobs.Ranks(r.Directory)
	for rank := range r.Config.Ranks {
		if !slices.Contains(local, rank) {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

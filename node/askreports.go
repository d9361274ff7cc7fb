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

// askTimeout limits how long a query of other ranks may take. While the engine runs, the protocol ends a query after a
// second (E53).
const askTimeout = 2 * time.Second

// AskReports asks other ranks, in ascending order, for their public state. It returns an entry for each rank.
func (r *Rank) AskReports(ctx context.Context, ranks []int) []state.AskResult {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	asked := make([]state.AskResult, len(ranks))
	reports, err := r.Engine.AskReports(ctx, ranks)
	for i, rank := range ranks {
		result := &asked[i]
		result.Rank, result.AskedBy = rank, r.Self.Rank
		if err == nil {
			if reports[i].Err == nil {
				result.Report, reports[i].Err = state.DecodePublic(reports[i].Report, rank, len(r.Config.Ranks))
			}
			if reports[i].Err != nil {
				result.Reason, result.Unanswered = reports[i].Err.Error(), errors.Is(reports[i].Err, mpe.ErrNoReport)
			}
			continue
		}
		result.Reason = err.Error()
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

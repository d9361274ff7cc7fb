package node

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/jobs"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// askTime is how long a question to other ranks takes at the most: the protocol has it end within a second (E53), if the engine runs.
const askTime = 2 * time.Second

// AskReports asks other ranks, in ascending order, what they wait for, and returns an entry for each.
func (r *Rank) AskReports(ctx context.Context, ranks []int) []state.Asked {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	asked := make([]state.Asked, len(ranks))
	reports, err := r.Engine.AskReports(ctx, ranks)
	for i, rank := range ranks {
		a := &asked[i]
		a.Rank = rank
		if err == nil {
			if reports[i].Err == nil {
				a.Report, reports[i].Err = state.DecodePublic(reports[i].Report, rank, len(r.Config.Ranks))
			}
			if reports[i].Err != nil {
				a.Reason = reports[i].Err.Error()
			}
			continue
		}
		a.Reason = err.Error()
	}
	return asked
}

// askedText is what a tool is answered that has a rank of a job ask others: all that are not on this host.
func (r *Rank) askedText() []byte {
	local := jobs.Ranks(r.Directory)
	var ranks []int
	for rank := range r.Config.Ranks {
		if !slices.Contains(local, rank) {
			ranks = append(ranks, rank)
		}
	}
	text, err := json.Marshal(AskedReports{r.AskReports(context.Background(), ranks)})
	if err != nil {
		return nil // the tool says that the rank has not answered
	}
	return text
}

// AskedReports is what ranks have answered that a rank, or a daemon, was asked to ask.
type AskedReports struct {
	Asked []state.Asked `json:"asked"`
}

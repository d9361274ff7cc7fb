package node

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/jobs"
	"github.com/zrlmpi/zrlmpid/mpe/waitreport"
)

// askTime is how long a question to other ranks takes at the most: the protocol has it end within a second (E53), if the engine runs.
const askTime = 2 * time.Second

// AskReports asks other ranks, in ascending order, what they wait for, and returns an entry for each.
func (r *Rank) AskReports(ctx context.Context, ranks []int) []waitreport.Asked {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	asked := make([]waitreport.Asked, len(ranks))
	reports, err := r.Engine.AskReports(ctx, ranks)
	for i, rank := range ranks {
		a := &asked[i]
		a.Rank = rank
		if err == nil {
			if reports[i].Err == nil {
				a.Report, reports[i].Err = waitreport.Decode(reports[i].Report, rank, len(r.Config.Ranks))
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

// waitReport returns what other ranks are answered.
func (r *Rank) waitReport() []byte {
	report := &waitreport.Report{
		Rank: r.Self.Rank, Address: r.Self.Address.String(), Role: string(r.Self.Run),
		Kernel:   r.Self.Kernel.Name, // and not the path of a program
		Programs: []waitreport.Program{{PID: os.Getpid()}}, Engine: r.Engine.Snapshot(),
	}
	links := r.Links()
	for i := range report.Engine.Peers {
		peer := &report.Engine.Peers[i]
		peer.Transport = string(links[peer.Rank].Transport)
	}
	if r.Describe != nil {
		r.Describe(report)
	}
	return waitreport.Encode(report)
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
	Asked []waitreport.Asked `json:"asked"`
}

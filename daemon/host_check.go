package daemon

import (
	"os"
	"slices"

	"go.uber.org/zap"

	"github.com/zrlmpi/zrlmpid/diagnosis/doctor"
	"github.com/zrlmpi/zrlmpid/diagnosis/doctor/system"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// examineHost runs the checks of this host that need no waiting, and logs one line for each problem. It takes a few
// milliseconds and runs once the daemon is serving. zrlctl doctor runs more checks and lists all problems.
func (d *Daemon) examineHost() {
	p := doctor.PlanFromConfig(d.opts.ConfigSource, d.cfg)
	status := state.Status{PID: os.Getpid()} // omit peers: in a large cluster, their states take much memory
	for _, r := range d.ranks {
		status.Ranks = append(status.Ranks, state.Rank{RankInfo: r.Info(state.DetailScrape)})
	}
	report := doctor.ExamineQuick(p, system.GatherQuick(p, os.Getpid()), &status)
	for _, c := range report.Results {
		wrong := slices.DeleteFunc(c.Findings, func(f doctor.Finding) bool { return f.Verdict != doctor.Wrong })
		if len(wrong) > 0 {
			d.log.Warn("host setup", zap.String("check", c.ID), zap.String("found", wrong[0].Found),
				zap.Int("more", len(wrong)-1), zap.String("action", wrong[0].Action))
		}
	}
}

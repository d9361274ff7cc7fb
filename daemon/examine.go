package daemon

import (
	"os"
	"slices"

	"go.uber.org/zap"

	"github.com/zrlmpi/zrlmpid/diagnosis/doctor"
	"github.com/zrlmpi/zrlmpid/diagnosis/doctor/system"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// examineHost logs the problems of this host that it finds without waiting, one line per check; zrlctl doctor
// checks more and lists all. It takes some milliseconds, once the daemon serves.
func (d *Daemon) examineHost() {
	p := doctor.FromConfig(d.opts.Source, d.cfg)
	status := state.Status{PID: os.Getpid()} // without peers: the states of a large cluster take memory
	for _, r := range d.ranks {
		status.Ranks = append(status.Ranks, state.Rank{RankInfo: r.Info(state.Scrape)})
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

package daemon

import (
	"github.com/zrlmpi/zrlmpid/internal/version"
	"github.com/zrlmpi/zrlmpid/metrics"
	"github.com/zrlmpi/zrlmpid/metrics/phases"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// rankObserver is a rank's Observer that also records the phases of messages.
type rankObserver struct {
	*Observer
	recorder *phases.Recorder
}

// Done implements mpe.Observer.
func (o *rankObserver) Done(rank int, s mpe.Status, err error) {
	o.recorder.RecordMessage(&s, err)
	if err != nil { // only failures are logged
		o.Observer.Done(rank, s, err)
	}
}

// newRankObserver returns the observer of a rank. It records metrics only if HTTP is enabled or the rank belongs to a
// job, because otherwise nothing reads them.
func (d *Daemon) newRankObserver(rank *localRank) mpe.Observer {
	var o mpe.Observer = d.observer
	if d.web != nil || d.opts.JobDirectory != "" {
		o = &rankObserver{d.observer, rank.RecordPhases(d.cfg.Metrics.Peers)}
	}
	if rank.FlightRecorder != nil {
		o = rank.FlightRecorder.Observe(o)
	}
	return o
}

// metricsSource returns the source of the daemon's metrics. The engines must be running.
func (d *Daemon) metricsSource() metrics.Source {
	src := metrics.Source{
		Version: version.String(), Started: d.started,
		LostLogLines: d.lostLogLines, LastReload: d.lastReload, AccessDenied: d.denials.counts,
		WebConfigFailures: d.web.ConfigFailures,
	}
	for _, r := range d.ranks {
		src.Ranks = append(src.Ranks, metrics.Rank{
			Engine: r.Engine, Recorder: r.PhaseRecorder, State: func() state.RankInfo { return r.Info(state.DetailScrape) },
		})
	}
	return src
}

// lostLogLines returns the number of log lines lost in the observer's queue and in the log's writer.
func (d *Daemon) lostLogLines() uint64 {
	lost := d.observer.lost.Load()
	if d.opts.LostLogLines != nil {
		lost += d.opts.LostLogLines()
	}
	return lost
}

package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/zrlmpi/zrlmpid/metrics/phases"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// Job is a job whose ranks have answered.
type Job struct {
	Name  string
	Ranks []JobRank
}

// JobRank is a rank of a job. Its counters started at Started.
type JobRank struct {
	Started time.Time
	State   state.RankInfo
	// Size is the number of ranks of the cluster.
	Size  int
	Own   state.RankCounters
	Peers []state.PeerCounters
	// Times has the phases of messages with other hosts and FPGAs.
	Times phases.Times
}

// Counters implements Engine.
func (r *JobRank) Counters(rank func(*state.RankCounters), peer func(*state.PeerCounters)) {
	rank(&r.Own)
	for i := range r.Peers {
		peer(&r.Peers[i])
	}
}

// PeerCounters implements Engine.
func (r *JobRank) PeerCounters(rank int, visit func(*state.PeerCounters)) {
	for i := range r.Peers {
		if r.Peers[i].Rank == rank {
			visit(&r.Peers[i])
		}
	}
}

// Collect implements prometheus.Collector for the ranks of a job.
func (j *Job) Collect(out chan<- prometheus.Metric) {
	for i := range j.Ranks {
		r := &j.Ranks[i]
		sampleRank(&Rank{Engine: r, Recorder: r.Times.Recorder(r.State.Rank, r.Size),
			State: func() state.RankInfo { return r.State }}, r.Started).collect(out)
	}
}

// Describe implements prometheus.Collector. It describes nothing, since the ranks are not known in advance.
func (*Job) Describe(chan<- *prometheus.Desc) {}

// jobLabel is the label with a job's name.
const jobLabel = "mpi_job"

// jobs collects the jobs that exist at the time of a scrape.
type jobs struct{ list func() []Job }

func (jobs) Describe(chan<- *prometheus.Desc) {}

func (c jobs) Collect(out chan<- prometheus.Metric) {
	list := c.list()
	for i := range list {
		prometheus.WrapCollectorWith(prometheus.Labels{jobLabel: list[i].Name}, &list[i]).Collect(out)
	}
}

// NewJobRegistry returns a registry of the jobs that list returns at each scrape. It has the series of a
// daemon's ranks, with the label mpi_job added.
func NewJobRegistry(list func() []Job) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(jobs{list}) // a single collector without descriptions cannot collide
	return r
}

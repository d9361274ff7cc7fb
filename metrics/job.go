package metrics

import (
	"time"

	"github.com/zrlmpi/zrlmpid/metrics/phases"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// Job contains the answers received from a job's ranks.
type Job struct {
	Name  string
	Ranks []JobRank
}

// JobRank describes a rank of a job. Its counters started at zero at the time Started.
type JobRank struct {
	Started time.Time
	State   state.RankInfo
	// ClusterSize is the number of ranks in the cluster.
	ClusterSize  int
	RankCounters state.RankCounters
	Peers        []state.PeerCounters
	// Times contains the phases of messages exchanged with other hosts and FPGAs.
	Times phases.Times
}

// Counters implements Engine.
func (r *JobRank) Counters(rank func(*state.RankCounters), peer func(*state.PeerCounters)) {
	rank(&r.RankCounters)
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

// collect adds the metrics of the job's ranks.
func (j *Job) collect(s *scrape) {
	s.job = s.label(jobLabel, j.Name)
	for i := range j.Ranks {
		r := &j.Ranks[i]
		s.startAt(r.Started)
		s.collectRank(&Rank{Engine: r, Recorder: r.Times.Recorder(r.State.Rank, r.ClusterSize),
			State: func() state.RankInfo { return r.State }})
	}
	s.collectSharedBuckets()
}

// jobLabel is the label for the name of a job.
const jobLabel = "mpi_job"

// NewJobRegistry returns a registry for the jobs returned by list, which it calls for each scrape. The registry
// contains the same series as a daemon's, with the label mpi_job added.
func NewJobRegistry(list func() []Job) *Registry {
	return &Registry{collect: func(s *scrape) {
		jobs := list()
		for i := range jobs {
			jobs[i].collect(s)
		}
	}}
}

package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/jobs"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/waitreport"
	"github.com/zrlmpi/zrlmpid/node"
	"github.com/zrlmpi/zrlmpid/standin"
)

// Job is a job that has ranks on this host, as these have answered.
type Job struct {
	// Name is that of its launcher. Root sees those of all users, which have "@" and the user's number behind it.
	Name string
	// Reports are those of the ranks that have answered, in rank order, and Silent the others.
	Reports []node.Report
	Silent  []int
	// Processes are those of Silent that could be found, in rank order.
	Processes []SilentProcess
	uid       int
	job       string // Name without the user
}

// jobTime is how long the ranks of jobs have to answer.
const jobTime = 2 * time.Second

// Jobs returns this user's jobs that have ranks on this host, sorted by name, and for root those of all users. With a name
// it asks the ranks of that job only.
func Jobs(ctx context.Context, name string) ([]*Job, error) {
	sockets, err := jobs.Find()
	if err != nil {
		return nil, fmt.Errorf("the jobs of this host: %w", err)
	}
	ctx, stop := context.WithTimeout(ctx, jobTime)
	defer stop()
	var mu sync.Mutex
	var asked sync.WaitGroup
	byName := map[string]*Job{}
	for _, s := range sockets {
		of := nameOf(s)
		if name != "" && of != name {
			continue
		}
		j := byName[of]
		if j == nil {
			j = &Job{Name: of, uid: s.UID, job: s.Job}
			byName[of] = j
		}
		asked.Go(func() {
			report, err := askRank(ctx, s)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				j.Silent = append(j.Silent, s.Rank)
				if pid, err := s.PID(); err == nil {
					j.Processes = append(j.Processes, SilentProcess{Rank: s.Rank, PID: pid, Stopped: Stopped(pid)})
				}
				return
			}
			j.Reports = append(j.Reports, *report)
		})
	}
	asked.Wait()
	list := make([]*Job, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		j := byName[name]
		slices.Sort(j.Silent)
		slices.SortFunc(j.Processes, func(a, b SilentProcess) int { return a.Rank - b.Rank })
		slices.SortFunc(j.Reports, func(a, b node.Report) int { return a.Rank - b.Rank })
		list = append(list, j)
	}
	return list, nil
}

// nameOf returns the name of the job of a rank, as Job has it.
func nameOf(s jobs.Socket) string {
	if s.UID != os.Geteuid() {
		return fmt.Sprintf("%s@%d", s.Job, s.UID)
	}
	return s.Job
}

// AskJob has a rank of a job on this host ask the ranks on other hosts what they wait for, over its links to them, and returns what they have answered.
func AskJob(ctx context.Context, name string, rank int) ([]waitreport.Asked, error) {
	sockets, err := jobs.Find()
	if err != nil {
		return nil, fmt.Errorf("the jobs of this host: %w", err)
	}
	i := slices.IndexFunc(sockets, func(s jobs.Socket) bool { return nameOf(s) == name && s.Rank == rank })
	if i < 0 {
		return nil, fmt.Errorf("rank %d of job %s is gone", rank, name)
	}
	text, err := sockets[i].AskOthers(ctx)
	if err != nil {
		return nil, err
	}
	var answer struct{ Asked *[]waitreport.Asked }
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, fmt.Errorf("rank %d of job %s has asked no others: %w", rank, name, err)
	}
	if answer.Asked == nil {
		return nil, fmt.Errorf("rank %d of job %s asks no others: %w", rank, name, errOlder)
	}
	return *answer.Asked, nil
}

var errOlder = errors.New("it runs an older version of zrlmpid")

// askRank returns the report of a rank.
func askRank(ctx context.Context, s jobs.Socket) (*node.Report, error) {
	text, err := s.Ask(ctx)
	if err != nil {
		return nil, err
	}
	r := new(node.Report)
	if err := json.Unmarshal(text, r); err != nil {
		return nil, err
	}
	foreign := func(rank int) bool { return rank < 0 || rank >= len(r.Cluster) }
	if r.Rank != s.Rank || foreign(r.Rank) ||
		slices.ContainsFunc(r.Engine.Peers, func(p mpe.PeerSnapshot) bool { return foreign(p.Rank) }) ||
		slices.ContainsFunc(r.Peers, func(p mpe.PeerCounters) bool { return foreign(p.Rank) }) {
		return nil, fmt.Errorf("%v answers as rank %d of %d", s, r.Rank, len(r.Cluster))
	}
	return r, nil
}

// Status returns the job as a daemon's status: its ranks on this host are the local ones.
func (j *Job) Status() Status {
	s := Status{Version: Version(), Job: j.Name, Silent: j.Silent, SilentProcesses: j.Processes, Cluster: []Member{}, Ranks: []LocalRank{}}
	for i := range j.Reports {
		r := &j.Reports[i]
		if s.Started.IsZero() || r.Started.Before(s.Started) {
			s.Started = r.Started
		}
		for rank, peer := range r.Cluster {
			if rank == len(s.Cluster) {
				s.Cluster = append(s.Cluster, Member{Rank: rank, Address: peer.Address, Kind: peer.Kind})
			}
			if m := &s.Cluster[rank]; m.Profile == "" {
				m.Profile, m.Transport = peer.Profile, peer.Transport
			}
		}
	}
	for i := range j.Reports {
		r := &j.Reports[i]
		if len(r.Cluster) != len(s.Cluster) {
			continue // it is not of the same job as the others
		}
		s.Cluster[r.Rank].Role, s.Cluster[r.Rank].Kernel = r.Role, r.Kernel
		s.Ranks = append(s.Ranks, localRank(r, j.uid))
	}
	if !s.Started.IsZero() {
		s.Uptime = time.Since(s.Started).Seconds()
	}
	return s
}

func localRank(r *node.Report, uid int) LocalRank {
	l := LocalRank{Engine: r.Engine, RankInfo: RankInfo{
		Rank: r.Rank, Role: r.Role, Address: r.Address, Transports: r.Transports,
		ReceiveBuffer: r.Buffer, ReceiveBufferRequested: r.BufferRequested,
		Ring: r.Ring, Shared: r.Shared, SingleCopy: r.SingleCopy, Oversubscribed: r.Oversubscribed,
	}}
	if r.Kernel == "" {
		pending := r.Own.Posted
		for i := range r.Peers {
			pending += r.Peers[i].QueuedSends + r.Peers[i].InFlight
		}
		l.Attached = []Program{{PID: r.PID, UID: uid, Seconds: time.Since(r.Started).Seconds(), Operations: pending}}
	} else {
		l.Kernel, l.KernelState, l.KernelStats, l.KernelHolds = r.Kernel, KernelRunning, new(standin.Stats), r.KernelHolds
	}
	if o := r.Offload; o != nil {
		l.Offload = &Offload{Batches: o.Batches, Segmentation: o.Segmentation, Coalescing: o.Coalescing, Disabled: o.Disabled}
		for _, peer := range slices.Sorted(maps.Keys(o.Refused)) {
			l.Offload.Refused = append(l.Offload.Refused, OffloadRefused{Peer: peer, Error: o.Refused[peer]})
		}
	}
	return l
}

package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/jobs"
	"github.com/zrlmpi/zrlmpid/internal/query"
	"github.com/zrlmpi/zrlmpid/internal/version"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/node"
)

// Job is a job with ranks on this host, together with the answers from these ranks.
type Job struct {
	// Name is the name of the job's launcher, or of the job's directory if several jobs have launchers of the
	// same name. For a job of another user, it ends in "@" and the user's number.
	Name string
	// Reports contains the answers from ranks, in rank order. Unread lists the ranks whose answers exceeded the
	// limit on the size of all answers. Silent lists the ranks that did not answer.
	Reports []node.Report
	Unread  []int
	Silent  []int
	// Processes describes the processes of Silent, as far as known, in rank order.
	Processes []state.SilentProcess
	jobs.Job
}

const (
	// jobTimeout is the maximum time to wait for the answers of all ranks.
	jobTimeout = time.Second
	// reportsTimeout is the maximum time that a rank may take to ask other ranks.
	reportsTimeout = 3 * time.Second
	// maxAnswers limits the size of all answers from one job in bytes. maxForeignBytes is the limit for a job of
	// another user, and maxAllAnswers the limit for all jobs together.
	maxAnswers      = 16 << 20
	maxForeignBytes = 4 << 20
	maxAllAnswers   = 64 << 20
	// maxConcurrentAsks is the maximum number of ranks that are asked concurrently.
	maxConcurrentAsks = 64
)

// FindJobs returns this user's jobs that have ranks on this host, sorted by name, without asking the ranks. If
// name is not empty, it returns only jobs of that name; a suffix of "@" and a user's number selects the jobs of
// that user. If any job runs in this process's network namespace, jobs in other namespaces are found only if
// name is the name of their directory.
func FindJobs(name string) ([]*Job, error) {
	of, uid, err := splitJobName(name)
	if err != nil {
		return nil, err
	}
	var found []jobs.Job
	if uid != os.Geteuid() {
		found, err = jobs.FindOf(uid, of)
	} else {
		found, err = jobs.Find()
	}
	if err != nil {
		return nil, fmt.Errorf("the jobs of this host: %w", err)
	}
	near := func(j jobs.Job) bool { return j.SameNetwork }
	if slices.ContainsFunc(found, near) { // others run on separate hosts, such as containers, and share a directory
		found = slices.DeleteFunc(found, func(j jobs.Job) bool { return !near(j) && j.ID() != of })
	}
	same := map[string]int{}
	for i := range found {
		same[found[i].Name]++
	}
	var list []*Job
	for i := range found {
		j := &Job{Name: found[i].Name, Job: found[i]}
		if of != "" && !j.Matches(of) {
			continue
		}
		if same[j.Name] > 1 {
			j.Name = j.ID()
		}
		if j.UID != os.Geteuid() {
			j.Name = fmt.Sprintf("%s@%d", j.Name, j.UID)
		}
		list = append(list, j)
	}
	slices.SortFunc(list, func(a, b *Job) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

// splitJobName splits a name into the name of a job and the number of its user.
func splitJobName(name string) (of string, uid int, err error) {
	of, number, foreign := strings.Cut(name, "@") // no job's name contains "@"
	if !foreign {
		return name, os.Geteuid(), nil
	}
	n, err := strconv.ParseUint(number, 10, 32)
	if err != nil || of == "" {
		return "", 0, Errorf(Usage, "job %q: a job of another user is NAME@NUMBER, with the number of the user", name)
	}
	return of, int(n), nil
}

// Jobs returns the same jobs as FindJobs, with the states of their ranks.
func Jobs(ctx context.Context, name string) ([]*Job, error) { return askJobs(ctx, name, query.Status) }

// JobMetrics returns this user's jobs with the counters and histograms of their ranks.
func JobMetrics(ctx context.Context) ([]*Job, error) { return askJobs(ctx, "", query.Metrics) }

func askJobs(ctx context.Context, name string, kind query.Kind) ([]*Job, error) {
	list, err := FindJobs(name)
	if err == nil {
		askAll(ctx, list, kind)
	}
	return list, err
}

// askAll asks all ranks of all given jobs.
func askAll(ctx context.Context, list []*Job, kind query.Kind) {
	ctx, stop := context.WithTimeout(ctx, jobTimeout)
	defer stop()
	all, gate := jobs.NewBudget(maxAllAnswers), make(chan struct{}, maxConcurrentAsks)
	var asked sync.WaitGroup
	for _, j := range list {
		j.Reports, j.Unread, j.Silent, j.Processes = nil, nil, nil, nil
		j.ask(ctx, kind, all, gate, &asked)
	}
	asked.Wait()
	for _, j := range list {
		slices.Sort(j.Silent)
		slices.Sort(j.Unread)
		slices.SortFunc(j.Processes, func(a, b state.SilentProcess) int { return a.Rank - b.Rank })
		slices.SortFunc(j.Reports, func(a, b node.Report) int { return a.Rank - b.Rank })
	}
}

// budget returns the size limit for all answers from the job's ranks.
func (j *Job) budget() *jobs.Budget {
	if j.UID != os.Geteuid() {
		return jobs.NewBudget(maxForeignBytes)
	}
	return jobs.NewBudget(maxAnswers)
}

// ask starts asking the ranks of the job.
func (j *Job) ask(ctx context.Context, kind query.Kind, all *jobs.Budget, gate chan struct{}, asked *sync.WaitGroup) {
	var mu sync.Mutex
	own := j.budget()
	for _, rank := range j.Ranks {
		gate <- struct{}{}
		asked.Go(func() {
			defer func() { <-gate }()
			report, pid, err := askRank(ctx, &j.Job, kind, rank, all, own)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				j.Reports = append(j.Reports, *report)
			case errors.Is(err, jobs.ErrTooLong):
				j.Unread = append(j.Unread, rank)
			default:
				j.Silent = append(j.Silent, rank)
				if pid != 0 {
					j.Processes = append(j.Processes, state.SilentProcess{Rank: rank, PID: pid, Stopped: IsStopped(pid)})
				}
			}
		})
	}
}

// Handle is a query.Handler that asks the job's ranks on this host.
func (j *Job) Handle(ctx context.Context, r query.Request) query.Response {
	switch r.Kind {
	case query.Status:
		askAll(ctx, []*Job{j}, r.Kind)
		return query.Response{Document: j.Status()}
	case query.Reports:
		asked, err := j.askReports(ctx, r)
		return query.Response{Document: asked, Err: err}
	case query.Reset:
		return query.Response{Err: j.reset(ctx, r)}
	}
	return query.Unknown(r)
}

// reset makes ranks of the job discard their state about a restarted peer: one rank or, for AnyRank, all ranks
// on this host except the peer.
func (j *Job) reset(ctx context.Context, r query.Request) error {
	ranks := j.Ranks
	if r.Rank != query.AnyRank {
		if ranks = []int{r.Rank}; !slices.Contains(j.Ranks, r.Rank) {
			return j.notLocalError(r.Rank)
		}
	}
	ctx, stop := context.WithTimeout(ctx, jobTimeout)
	defer stop()
	var errs []error
	for _, rank := range ranks {
		if rank == r.Peer && r.Rank == query.AnyRank {
			continue
		}
		one := r
		one.Rank = rank
		if _, _, err := j.Ask(ctx, one, jobs.NewBudget(0)); err != nil {
			errs = append(errs, fmt.Errorf("rank %d of job %s: %w", rank, j.Name, err))
		}
	}
	return errors.Join(errs...)
}

func (j *Job) notLocalError(rank int) error {
	return Errorf(Rank, "rank %d is not one of job %s on this host: these are %v", rank, j.Name, j.Ranks)
}

// askReports makes a rank of the job, by default the lowest one, ask ranks on other hosts for their waits, over
// its links to them.
func (j *Job) askReports(ctx context.Context, r query.Request) (asked state.Reports, err error) {
	if r.Rank == query.AnyRank && len(j.Ranks) > 0 {
		r.Rank = j.Ranks[0]
	}
	if !slices.Contains(j.Ranks, r.Rank) {
		return asked, j.notLocalError(r.Rank)
	}
	ctx, stop := context.WithTimeout(ctx, reportsTimeout)
	defer stop()
	text, _, err := j.Ask(ctx, r, j.budget())
	if err == nil {
		err = decodeAnswer(text, &asked)
	}
	if err != nil {
		return asked, fmt.Errorf("rank %d of job %s has asked no others: %w", r.Rank, j.Name, err)
	}
	return asked, nil
}

// askRank asks a rank. It returns the rank's report and process ID, which is 0 if unknown.
func askRank(
	ctx context.Context, j *jobs.Job, kind query.Kind, rank int, budgets ...*jobs.Budget,
) (*node.Report, int, error) {
	text, pid, err := j.Ask(ctx, query.Request{Kind: kind, Rank: rank}, budgets...)
	if err != nil {
		return nil, pid, err
	}
	r := new(node.Report)
	if err := decodeAnswer(text, r); err != nil {
		return nil, pid, err
	}
	foreign := func(rank int) bool { return rank < 0 || rank >= len(r.Cluster) }
	if r.Rank != rank || foreign(r.Rank) || len(r.Engine.Peers) > len(r.Cluster) || len(r.Peers) > len(r.Cluster) ||
		slices.ContainsFunc(r.Engine.Peers, func(p state.Peer) bool { return foreign(p.Rank) }) ||
		slices.ContainsFunc(r.Peers, func(p state.PeerCounters) bool { return foreign(p.Rank) }) {
		return nil, pid, fmt.Errorf("rank %d of job %s answers as rank %d of %d", rank, j.Name, r.Rank, len(r.Cluster))
	}
	r.PID, r.UID, r.SocketDrops = pid, j.UID, r.Drops
	r.Attached = nil // do not trust the rank's claim: the kernel knows its process
	if r.Kernel == "" {
		r.Attached = []state.Program{{PID: pid, UID: j.UID, Seconds: time.Since(r.Started).Seconds(),
			Operations: r.Operations}}
	}
	return r, pid, nil
}

// Status returns the job in the form of a daemon's status. The job's ranks on this host appear as local ranks.
func (j *Job) Status() state.Status {
	s := state.Status{Version: version.String(), Job: j.Name, Silent: j.Silent, UnreadRanks: j.Unread,
		SilentProcesses: j.Processes,
		Cluster:         []state.Member{}, Ranks: []state.Rank{}}
	if j.UID != os.Geteuid() {
		s.ForeignUser = new(j.UID)
	}
	for i := range j.Reports {
		r := &j.Reports[i]
		if s.Started.IsZero() || r.Started.Before(s.Started) {
			s.Started = r.Started
		}
		for rank, peer := range r.Cluster {
			if rank == len(s.Cluster) {
				s.Cluster = append(s.Cluster, state.Member{Rank: rank, Address: peer.Address, Kind: peer.Kind})
			}
			if m := &s.Cluster[rank]; m.Profile == "" {
				m.Profile, m.Transport = peer.Profile, peer.Transport
			}
		}
	}
	for i := range j.Reports {
		r := &j.Reports[i]
		if len(r.Cluster) != len(s.Cluster) {
			continue // belongs to a different job than the others
		}
		s.Cluster[r.Rank].Role, s.Cluster[r.Rank].Kernel = r.Role, r.Kernel
		s.Ranks = append(s.Ranks, state.Rank{RankInfo: r.RankInfo, Engine: r.Engine})
	}
	if !s.Started.IsZero() {
		s.Uptime = time.Since(s.Started).Seconds()
	}
	return s
}

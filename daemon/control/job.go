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

// Job is a job with ranks on this host, together with the answers of these ranks.
type Job struct {
	// Name is the name of the job's launcher, or of the job's directory if the launchers of several jobs share a name.
	// For a job of another user, it ends in "@" and the user's number.
	Name string
	// Reports contains the ranks' answers, in rank order. Unread lists the ranks whose answers exceeded the total size
	// limit. Silent lists the ranks that did not answer.
	Reports []node.Report
	Unread  []int
	Silent  []int
	// Processes describes the known processes of the ranks in Silent, in rank order.
	Processes []state.SilentProcess
	jobs.Job
}

const (
	// jobTimeout is the maximum time to wait for the answers of all ranks.
	jobTimeout = time.Second
	// reportsTimeout is the maximum time for a rank to query other ranks.
	reportsTimeout = 3 * time.Second
	// maxAnswers is the maximum size in bytes of all answers from one job. maxForeignBytes is the maximum for a job of
	// another user, and maxAllAnswers the maximum for all jobs together.
	maxAnswers      = 16 << 20
	maxForeignBytes = 4 << 20
	maxAllAnswers   = 64 << 20
	// maxConcurrentAsks is the maximum number of ranks queried concurrently.
	maxConcurrentAsks = 64
)

// FindJobs returns this user's jobs with ranks on this host, sorted by name, without querying the ranks. A non-empty
// name selects the jobs of that name; a suffix of "@" and a user's number selects jobs of that user. If any job runs in
// this process's network namespace, a job in another namespace is returned only if name is the name of its directory.
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
		job := &Job{Name: found[i].Name, Job: found[i]}
		if of != "" && !job.Matches(of) {
			continue
		}
		if same[job.Name] > 1 {
			job.Name = job.ID()
		}
		if job.UID != os.Geteuid() {
			job.Name = fmt.Sprintf("%s@%d", job.Name, job.UID)
		}
		list = append(list, job)
	}
	slices.SortFunc(list, func(a, b *Job) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

// splitJobName splits a name into the name of a job and the ID of the job's user.
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

// askJobs finds jobs and queries their ranks. A rank that does not answer is no error; the job lists it in Silent.
func askJobs(ctx context.Context, name string, kind query.Kind) ([]*Job, error) {
	list, err := FindJobs(name)
	if err == nil {
		askAll(ctx, list, kind)
	}
	return list, err
}

// askAll queries all ranks of all given jobs.
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

// budget returns the maximum total size of the answers from the job's ranks.
func (j *Job) budget() *jobs.Budget {
	if j.UID != os.Geteuid() {
		return jobs.NewBudget(maxForeignBytes)
	}
	return jobs.NewBudget(maxAnswers)
}

// ask queries all ranks of the job, each in its own goroutine.
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

// Handle is a query.Handler that queries the job's ranks on this host.
func (j *Job) Handle(ctx context.Context, request query.Request) query.Response {
	switch request.Kind {
	case query.Status:
		askAll(ctx, []*Job{j}, request.Kind)
		return query.Response{Document: j.Status()}
	case query.Reports:
		asked, err := j.askReports(ctx, request)
		return query.Response{Document: asked, Err: err}
	case query.Reset:
		return query.Response{Err: j.reset(ctx, request)}
	}
	return query.Unknown(request)
}

// reset makes ranks of the job discard their state about a restarted peer. The ranks are request.Rank or, for AnyRank,
// all ranks on this host except the peer.
func (j *Job) reset(ctx context.Context, request query.Request) error {
	ranks := j.Ranks
	if request.Rank != query.AnyRank {
		if ranks = []int{request.Rank}; !slices.Contains(j.Ranks, request.Rank) {
			return j.notLocalError(request.Rank)
		}
	}
	ctx, stop := context.WithTimeout(ctx, jobTimeout)
	defer stop()
	var errs []error
	for _, rank := range ranks {
		if rank == request.Peer && request.Rank == query.AnyRank {
			continue
		}
		one := request
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

// askReports makes a rank of the job query the ranks on other hosts for their waits, over its links to them. For
// AnyRank, it selects the lowest rank.
func (j *Job) askReports(ctx context.Context, request query.Request) (asked state.Reports, err error) {
	if request.Rank == query.AnyRank && len(j.Ranks) > 0 {
		request.Rank = j.Ranks[0]
	}
	if !slices.Contains(j.Ranks, request.Rank) {
		return asked, j.notLocalError(request.Rank)
	}
	ctx, stop := context.WithTimeout(ctx, reportsTimeout)
	defer stop()
	text, _, err := j.Ask(ctx, request, j.budget())
	if err == nil {
		err = decodeAnswer(text, &asked)
	}
	if err != nil {
		return asked, fmt.Errorf("rank %d of job %s has asked no others: %w", request.Rank, j.Name, err)
	}
	return asked, nil
}

// askRank queries a rank. It returns the rank's report and its process ID, or 0 if the process is unknown.
func askRank(
	ctx context.Context, job *jobs.Job, kind query.Kind, rank int, budgets ...*jobs.Budget,
) (*node.Report, int, error) {
	text, pid, err := job.Ask(ctx, query.Request{Kind: kind, Rank: rank}, budgets...)
	if err != nil {
		return nil, pid, err
	}
	report := new(node.Report)
	if err := decodeAnswer(text, report); err != nil {
		return nil, pid, err
	}
	foreign := func(rank int) bool { return rank < 0 || rank >= len(report.Cluster) }
	if report.Rank != rank || foreign(report.Rank) || len(report.Engine.Peers) > len(report.Cluster) ||
		len(report.Peers) > len(report.Cluster) ||
		slices.ContainsFunc(report.Engine.Peers, func(p state.Peer) bool { return foreign(p.Rank) }) ||
		slices.ContainsFunc(report.Peers, func(p state.PeerCounters) bool { return foreign(p.Rank) }) {
		return nil, pid, fmt.Errorf("rank %d of job %s answers as rank %d of %d", rank, job.Name, report.Rank,
			len(report.Cluster))
	}
	report.PID, report.UID, report.SocketDrops = pid, job.UID, report.Drops
	report.Attached = nil // do not trust the rank: the kernel identifies its process
	if report.Kernel == "" {
		report.Attached = []state.Program{{PID: pid, UID: job.UID, Seconds: time.Since(report.Started).Seconds(),
			Operations: report.Operations}}
	}
	return report, pid, nil
}

// Status returns the job in the form of a daemon's status. The job's ranks on this host become its local ranks.
func (j *Job) Status() state.Status {
	status := state.Status{Version: version.String(), Job: j.Name, Silent: j.Silent, UnreadRanks: j.Unread,
		SilentProcesses: j.Processes,
		Cluster:         []state.Member{}, Ranks: []state.Rank{}}
	if j.UID != os.Geteuid() {
		status.ForeignUser = new(j.UID)
	}
	for i := range j.Reports {
		r := &j.Reports[i]
		if status.Started.IsZero() || r.Started.Before(status.Started) {
			status.Started = r.Started
		}
		for rank, peer := range r.Cluster {
			if rank == len(status.Cluster) {
				status.Cluster = append(status.Cluster, state.Member{Rank: rank, Address: peer.Address, Kind: peer.Kind})
			}
			if m := &status.Cluster[rank]; m.Profile == "" {
				m.Profile, m.Transport = peer.Profile, peer.Transport
			}
		}
	}
	for i := range j.Reports {
		r := &j.Reports[i]
		if len(r.Cluster) != len(status.Cluster) {
			continue // belongs to another job
		}
		status.Cluster[r.Rank].Role, status.Cluster[r.Rank].Kernel = r.Role, r.Kernel
		status.Ranks = append(status.Ranks, state.Rank{RankInfo: r.RankInfo, Engine: r.Engine})
	}
	if !status.Started.IsZero() {
		status.Uptime = time.Since(status.Started).Seconds()
	}
	return status
}

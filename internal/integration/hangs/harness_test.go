package hangs_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/testkit/loopback"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/diagnosis"
	"github.com/zrlmpi/zrlmpid/internal/jobs"
	"github.com/zrlmpi/zrlmpid/internal/query"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/node"
)

// after is the minimum age of a wait to be diagnosed, and causeTime the time limit for a diagnosis.
const (
	after     = 100 * time.Millisecond
	causeTime = 20 * time.Second
)

// moments are the ages of a hang at which it is diagnosed.
var moments = []time.Duration{2 * time.Second, 5 * time.Second}

// namespace runs functions in the network namespace of a rank, which may be the namespace of the process.
type namespace interface{ Do(f func()) }

type here struct{}

func (here) Do(f func()) { f() }

// cluster runs ranks in this process. Each rank is a separate job, as on a separate host, and answers tools on its own
// socket.
type cluster struct {
	t    *testing.T
	name string
	net  string // the first three numbers of the addresses
	// ctx is the context of the programs. cancel ends them.
	ctx    context.Context
	cancel func()

	mu    sync.Mutex
	ranks map[int]*node.Rank
	jobs  map[int]*control.Job
	stops map[int]func(wait time.Duration) // end a rank
	ended sync.WaitGroup
}

var clusters atomic.Int64

func newCluster(t *testing.T) *cluster {
	ctx, cancel := context.WithCancel(context.Background())
	c := &cluster{t: t, ctx: ctx, cancel: cancel, ranks: map[int]*node.Rank{}, jobs: map[int]*control.Job{},
		stops: map[int]func(time.Duration){}, net: loopback.Network(t),
		name: fmt.Sprintf("hangs_%d_%d", os.Getpid(), clusters.Add(1))}
	t.Cleanup(c.close)
	return c
}

// close ends all programs, and then all ranks.
func (c *cluster) close() {
	c.cancel()
	c.ended.Wait()
	for rank := range c.ranks {
		c.stop(rank, 100*time.Millisecond) // its program may still hang
	}
}

// stop closes a rank whose programs are done. wait limits the time for sending pending packets.
func (c *cluster) stop(rank int, wait time.Duration) {
	c.mu.Lock()
	stop := c.stops[rank]
	delete(c.stops, rank)
	delete(c.ranks, rank)
	c.mu.Unlock()
	if stop != nil {
		stop(wait)
	}
}

// retry calls bind until it succeeds. A process that is being started briefly shares all sockets of this process,
// including sockets that this process closes in the meantime.
func retry(bind func() error) (err error) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); <-tick.C {
		if err = bind(); err == nil {
			break
		}
	}
	return err
}

// text returns a configuration of ranks whose addresses end with the given numbers. An entry may have further settings:
// "2, peer: fpga".
func (c *cluster) text(defaults string, ranks ...string) string {
	b := strings.Builder{}
	fmt.Fprintf(&b, "control: {socket: \"\"}\nhttp: {listen: \"\"}\ndefaults: {%s}\nranks:\n", defaults)
	for i, r := range ranks {
		fmt.Fprintf(&b, "  - {rank: %d, address: %s%s}\n", i, c.net, r)
	}
	return b.String()
}

// start starts a rank of a configuration and a server for tools.
func (c *cluster) start(ns namespace, text string, rank int) *node.Rank {
	c.t.Helper()
	cfg, err := config.Parse(strings.NewReader(text), "test.yaml")
	if err != nil {
		c.t.Fatal(err)
	}
	m, err := node.RankMap(cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	var r *node.Rank
	err = retry(func() (err error) {
		if r, err = node.Plan(cfg, cfg.Rank(rank)); err == nil {
			ns.Do(func() { err = r.Bind(m) })
		}
		return err
	})
	if err == nil {
		err = r.Start(nil)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	// The rank is a separate job, whose ranks meet by their addresses.
	job := &control.Job{Job: jobs.Job{Name: fmt.Sprintf("%s_%d", c.name, rank), UID: os.Geteuid(), Ranks: []int{rank}}}
	directory, _, err := jobs.Make(job.Job.Name)
	if err != nil {
		c.t.Fatal(err)
	}
	r.Directory, job.Directory = directory, directory
	answers := r.Serve()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ranks[rank], c.jobs[rank] = r, job
	c.stops[rank] = func(wait time.Duration) {
		answers.Close()
		jobs.RemoveEmpty(directory)
		ctx, cancel := context.WithTimeout(context.Background(), wait)
		defer cancel()
		_ = r.Close(ctx)
	}
	return r
}

// run runs the program of a rank until the test ends. It ignores errors after the end of the test.
func (c *cluster) run(rank int, program func(ctx context.Context, world *mpi.Comm) error) {
	c.t.Helper()
	world, err := mpi.New(c.ranks[rank].Engine)
	if err != nil {
		c.t.Fatal(err)
	}
	c.ended.Go(func() {
		if err := program(c.ctx, world); err != nil && c.ctx.Err() == nil {
			c.t.Errorf("rank %d: %v", rank, err)
		}
	})
}

// sources asks all ranks, or only the given ranks.
func (c *cluster) sources(only ...int) (list []diagnosis.Source) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(only) == 0 {
		for rank := range 16 {
			if c.ranks[rank] != nil {
				only = append(only, rank)
			}
		}
	}
	for _, rank := range only {
		job := c.jobs[rank]
		s, err := query.Get[state.Status](context.Background(), job.Handle, query.Request{Kind: query.Status})
		if err != nil || len(s.Ranks) != 1 {
			c.t.Fatalf("rank %d: %+v, %v", rank, s, err)
		}
		s.Job = "" // the rank is one of several on its host
		s.Ranks[0].Attached = nil
		s.Ranks[0].Attached = append(s.Ranks[0].Attached, state.Program{PID: os.Getpid()})
		list = append(list, diagnosis.Source{Name: job.Job.Name, Status: &s})
	}
	return list
}

const anyPeer = -2

// want is the expected finding.
type want struct {
	cause      string
	rank, peer int
	call       diagnosis.Call
	// peer is anyPeer if several ranks wait for the same rank. step and text are substrings of the finding's Step and
	// Text.
	step, text string
}

func (w want) of(f *diagnosis.Finding) bool {
	return f.Cause == w.cause && f.Rank == w.rank && (f.Peer == w.peer || w.peer == anyPeer) &&
		(f.Call == w.call || w.call == "") && strings.Contains(f.Step, w.step) && strings.Contains(f.Text, w.text)
}

// explained waits until the diagnosis of all ranks, or only of the given ranks, is the expected one.
func (c *cluster) explained(w want, only ...int) *diagnosis.Diagnosis {
	c.t.Helper()
	return explained(c.t, w, func() []diagnosis.Source { return c.sources(only...) })
}

// fromEach verifies that each rank alone finds the cause by asking the other ranks over its links.
func (c *cluster) fromEach(w want) {
	c.t.Helper()
	for rank := range c.ranks {
		explained(c.t, w, func() []diagnosis.Source {
			list := c.sources(rank)
			asked, err := query.Get[state.Reports](c.ctx, c.jobs[rank].Handle,
				query.Request{Kind: query.Reports, Rank: rank})
			if err != nil {
				c.t.Fatal(err)
			}
			list[0].Asked = asked.Results
			return list
		})
	}
}

// explained waits until the expected finding is the only one of the diagnosis, and checks that the diagnosis for each
// waiting rank also contains a single finding.
func explained(t *testing.T, w want, ask func() []diagnosis.Source) (d *diagnosis.Diagnosis) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(causeTime); time.Now().Before(deadline); <-tick.C {
		d = diagnosis.Diagnose(ask(), after)
		if len(d.Findings) != 1 || !w.of(&d.Findings[0]) {
			continue
		}
		for _, rank := range d.Waiting {
			if seen := d.ForRank(rank); len(seen.Findings) != 1 {
				t.Errorf("from rank %d: %s", rank, seen.Text())
			}
		}
		t.Logf("\n%s", d.Text())
		return d
	}
	t.Errorf("want %+v, found\n%s%+v", w, d.Text(), d.Findings)
	return d
}

// until waits until ok returns true for the diagnosis of all ranks.
func (c *cluster) until(what string, ok func(d *diagnosis.Diagnosis) bool) {
	c.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(causeTime); ; <-tick.C {
		d := diagnosis.Diagnose(c.sources(), after)
		if ok(d) {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("timed out waiting for %s:\n%s", what, d.Text())
		}
	}
}

// exchange exchanges messages between two ranks, and then waits for a while.
func (c *cluster) exchange(a, b int) {
	c.t.Helper()
	for _, pair := range [][2]int{{a, b}, {b, a}} {
		ctx, cancel := context.WithTimeout(c.ctx, causeTime)
		from, to := c.ranks[pair[0]].Engine, c.ranks[pair[1]].Engine
		r, err := to.Irecv(pair[0], make([]byte, 4), mpe.Options{})
		if err == nil {
			_, err = from.Send(ctx, pair[1], make([]byte, 4), mpe.Options{})
		}
		if err == nil {
			_, err = r.Wait(ctx)
		}
		cancel()
		if err != nil {
			c.t.Fatal(err)
		}
	}
	c.until("a while has passed", func(*diagnosis.Diagnosis) bool {
		for _, pair := range [][2]int{{a, b}, {b, a}} {
			for _, p := range c.ranks[pair[0]].Engine.Snapshot().Peers {
				if p.Rank == pair[1] && (p.SinceLastPacket == nil || *p.SinceLastPacket < 1) {
					return false
				}
			}
		}
		return true
	})
}

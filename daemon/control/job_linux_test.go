package control

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/testkit/loopback"

	"github.com/zrlmpi/zrlmpid/internal/jobs"
	"github.com/zrlmpi/zrlmpid/internal/query"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/node"
)

// launcher is an in-memory launcher for a job of two ranks.
type launcher struct {
	name    string
	mu      sync.Mutex
	values  map[string]string
	arrived int
	passed  chan struct{} // closed when all ranks are waiting
}

func newLauncher(name string) *launcher {
	return &launcher{name: name, values: map[string]string{}, passed: make(chan struct{})}
}

type process struct {
	*launcher
	rank int
}

func (p process) Name() string { return p.name }

func (p process) Rank() int { return p.rank }

func (p process) Size() int { return 2 }

func (p process) Put(_ context.Context, key, value string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.values[key] = value
	return nil
}

func (p process) Get(_ context.Context, key string) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.values[key], nil
}

func (p process) Barrier(context.Context) error {
	p.mu.Lock()
	passed := p.passed
	if p.arrived++; p.arrived == p.Size() {
		close(passed)
		p.arrived, p.passed = 0, make(chan struct{})
	}
	p.mu.Unlock()
	<-passed
	return nil
}

func (process) Finalize(context.Context) error { return nil }

// TestJobs checks that the ranks of a job can be found while they run, and that they answer with their states.
func TestJobs(t *testing.T) {
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	config := filepath.Join(t.TempDir(), "job.yaml")
	text := fmt.Sprintf(`
ranks:
  - {rank: 0, address: %[1]s1, run: host}
  - {rank: 1, address: %[1]s2, peer: fpga}
  - {rank: 2, address: %[1]s3, run: host}
`, loopback.Network(t))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l := newLauncher(fmt.Sprintf("test_%d", os.Getpid()))
	devices, errs := make([]mpe.Device, 2), make([]error, 2)
	var joined sync.WaitGroup
	for i := range devices {
		joined.Go(func() { devices[i], errs[i] = node.Join(ctx, process{l, i}, config) })
	}
	joined.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	word := []byte{1, 2, 3, 4}
	out, err := devices[0].Start(mpe.Operation{Kind: mpe.OpSend, Peer: 2, Buf: word})
	if err != nil {
		t.Fatal(err)
	}
	in, err := devices[1].Start(mpe.Operation{Kind: mpe.OpRecv, Peer: 0, Buf: make([]byte, 4)})
	if err != nil {
		t.Fatal(err)
	}
	_, err1 := out.Await(ctx)
	_, err2 := in.Await(ctx)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	waits, err := devices[1].Start(mpe.Operation{Kind: mpe.OpRecv, Peer: 1, Buf: word})
	if err != nil {
		t.Fatal(err)
	}

	counted, err := JobMetrics(ctx)
	if err != nil {
		t.Fatal(err)
	}
	counted = slices.DeleteFunc(counted, func(j *Job) bool { return j.Name != l.name })
	if len(counted) != 1 || len(counted[0].Reports) != 2 {
		t.Fatalf("%+v", counted)
	}
	list, err := Jobs(ctx, l.name)
	if err != nil || len(list) != 1 || len(list[0].Reports) != 2 || len(list[0].Silent) != 0 {
		t.Fatalf("%+v, %v", list, err)
	}
	for i := range counted[0].Reports {
		r := &counted[0].Reports[i]
		var own state.RankCounters
		var peers []state.PeerCounters
		e := devices[i].(interface {
			Counters(rank func(*state.RankCounters), peer func(*state.PeerCounters))
		})
		e.Counters(func(c *state.RankCounters) { own = *c }, func(c *state.PeerCounters) { peers = append(peers, *c) })
		for p := range peers { // acknowledgements are late, and waits are longer now
			for _, c := range []*state.PeerCounters{&peers[p], &r.Peers[p]} {
				c.PacketsIn, c.PacketsOut, c.BytesIn, c.BytesOut = [state.NumTypes]uint64{}, [state.NumTypes]uint64{},
					[state.NumTypes]uint64{}, [state.NumTypes]uint64{}
				c.InFlight, c.InFlightPackets, c.RoundTrip, c.OldestSend, c.OldestRecv.Elapsed = 0, 0, 0,
					state.OldestWait{}, 0
			}
		}
		if !reflect.DeepEqual(r.RankCounters, own) || !reflect.DeepEqual(r.Peers, peers) || r.PID != os.Getpid() {
			t.Errorf("rank %d answers\n%+v\n%+v\nand has\n%+v\n%+v", r.Rank, r.RankCounters, r.Peers, own, peers)
		}
	}
	s := list[0].Status()
	if s.Job != l.name || len(s.Cluster) != 3 || len(s.Ranks) != 2 || s.Uptime <= 0 {
		t.Errorf("%+v", s)
	}
	if m := s.Cluster[1]; m.Kind != "fpga" || m.Role != "" || m.Profile != "cloudfpga" || m.Transport != "udp" {
		t.Errorf("%+v", m)
	}
	if r := s.Ranks[1]; r.Rank != 2 || r.Role != state.RoleHost || len(r.Engine.Peers) != 2 || len(r.Attached) != 1 ||
		r.Attached[0].Operations != 1 || r.Engine.Peers[0].Received != 1 {
		t.Errorf("%+v", r)
	}

	// The job's rank asks ranks that are not on this host, over links that support it.
	reports := query.Request{Kind: query.Reports, Rank: 2}
	asked, err := query.Get[state.Reports](ctx, list[0].Handle, reports)
	if err != nil || !reflect.DeepEqual(asked.Results,
		[]state.AskResult{{Rank: 1, Reason: mpe.ErrNotExtended.Error(), AskedBy: 2}}) {
		t.Errorf("%+v, %v", asked, err)
	}
	reports.Rank = 1
	if _, err := query.Get[state.Reports](ctx, list[0].Handle, reports); err == nil ||
		!strings.Contains(err.Error(), "rank 1 is not one of job "+l.name) {
		t.Error(err)
	}

	// A rank that does not answer, or answers as a different rank, is listed.
	other, err := jobs.Serve(list[0].Directory, 7, func(context.Context, query.Request) query.Response {
		return query.Response{Document: map[string]int{"rank": 8}}
	})
	if err != nil {
		t.Fatal(err)
	}
	if list, err := Jobs(ctx, l.name); err != nil || len(list) != 1 || len(list[0].Reports) != 2 ||
		!reflect.DeepEqual(list[0].Status().Silent, []int{7}) {
		t.Errorf("%+v, %v", list, err)
	}
	other.Close()

	waits.Cancel()
	for _, d := range devices {
		if err := d.Close(ctx); err != nil {
			t.Error(err)
		}
	}
	if list, err := Jobs(ctx, l.name); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestClaims checks that claims by a process about the programs of its rank, and about the numbers of other
// ranks, are ignored.
func TestClaims(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	directory, warning, err := jobs.Make("claims")
	if err != nil || warning != nil {
		t.Fatal(warning, err)
	}
	for rank, kernel := range []string{"", "echo"} {
		c, err := jobs.Serve(directory, rank, func(context.Context, query.Request) query.Response {
			return query.Response{Document: &node.Report{
				RankInfo: state.RankInfo{Rank: rank, Kernel: kernel,
					Attached: []state.Program{{PID: 1, Stopped: true}}},
				Cluster: []state.Member{{Rank: 7, Role: state.RoleHost}, {Rank: 9, Kernel: "sink"}, {}},
			}}
		})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	list, err := Jobs(t.Context(), "claims")
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	s := list[0].Status()
	for i, m := range s.Cluster {
		if want := (state.Member{Rank: i, Kernel: []string{"", "echo", ""}[i]}); m != want {
			t.Errorf("%+v, want %+v", m, want)
		}
	}
	if len(s.Ranks) != 2 || len(s.Ranks[0].Attached) != 1 || s.Ranks[0].Attached[0].PID != os.Getpid() ||
		s.Ranks[0].Attached[0].Stopped || s.Ranks[1].Attached != nil {
		t.Errorf("%+v", s.Ranks)
	}
}

// TestResetByAll checks that all ranks of a job except the peer itself reset the peer.
func TestResetByAll(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	directory, warning, err := jobs.Make("reset")
	if err != nil || warning != nil {
		t.Fatal(warning, err)
	}
	asked := make(chan int, 3)
	for rank := range 3 {
		c, err := jobs.Serve(directory, rank, func(_ context.Context, r query.Request) query.Response {
			asked <- r.Rank
			return query.Response{}
		})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	list, err := FindJobs("reset")
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	err = query.Do(t.Context(), list[0].Handle, query.Request{Kind: query.Reset, Rank: query.AnyRank, Peer: 1})
	if err != nil || len(asked) != 2 || <-asked != 0 || <-asked != 2 {
		t.Error(err)
	}
}

// TestAnswerBudgets checks the limits on the size of the answers from a job's ranks, which state.Status.Doubts
// states.
func TestAnswerBudgets(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	directory, _, err := jobs.Make("budgets")
	if err != nil {
		t.Fatal(err)
	}
	served := &jobs.Job{Directory: directory, UID: os.Geteuid()}
	for rank, tt := range []struct {
		uid, bytes int
		err        error
	}{
		{os.Geteuid(), 16 << 20, nil},
		{os.Geteuid(), 16<<20 + 1, jobs.ErrTooLong},
		{os.Geteuid() + 1, 4 << 20, nil},
		{os.Geteuid() + 1, 4<<20 + 1, jobs.ErrTooLong},
	} {
		text := strings.Repeat("x", tt.bytes-2) // the two quotes are part of the answer
		c, err := jobs.Serve(directory, rank, func(context.Context, query.Request) query.Response {
			return query.Response{Document: text}
		})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		job := Job{Job: jobs.Job{UID: tt.uid}}
		if _, _, err := served.Ask(t.Context(), query.Request{Rank: rank}, job.budget()); !errors.Is(err, tt.err) {
			t.Errorf("%d bytes of user %d: %v, not %v", tt.bytes, tt.uid, err, tt.err)
		}
	}
}

// TestJobAsks checks that a request that names a rank is sent to that rank, and that a request for any rank is
// sent to the lowest rank, or to all ranks that it concerns.
func TestJobAsks(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	directory, _, err := jobs.Make("asks")
	if err != nil {
		t.Fatal(err)
	}
	j := &Job{Name: "asks", Job: jobs.Job{Directory: directory, UID: os.Geteuid(), Ranks: []int{3, 5}}}
	asked := make(chan int, len(j.Ranks))
	for _, rank := range j.Ranks {
		c, err := jobs.Serve(directory, rank, func(_ context.Context, r query.Request) query.Response {
			asked <- rank
			if r.Kind == query.Reset {
				return query.Response{}
			}
			return query.Response{Document: state.Reports{Results: []state.AskResult{{Rank: rank}}}}
		})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	for _, tt := range []struct {
		kind       query.Kind
		rank, peer int
		asked      []int
		fails      bool
	}{
		{query.Reports, query.AnyRank, 0, []int{3}, false},
		{query.Reports, 3, 0, []int{3}, false},
		{query.Reports, 5, 0, []int{5}, false},
		{query.Reports, 4, 0, nil, true},
		{query.Reset, query.AnyRank, 1, []int{3, 5}, false},
		{query.Reset, query.AnyRank, 3, []int{5}, false},
		{query.Reset, 5, 3, []int{5}, false},
		{query.Reset, 3, 3, []int{3}, false}, // which rejects the request
		{query.Reset, 4, 3, nil, true},
		{query.Support, query.AnyRank, 0, nil, true},
	} {
		resp := j.Handle(t.Context(), query.Request{Kind: tt.kind, Rank: tt.rank, Peer: tt.peer})
		var got []int
		for len(asked) > 0 {
			got = append(got, <-asked)
		}
		if !slices.Equal(got, tt.asked) || (resp.Err != nil) != tt.fails {
			t.Errorf("%s of rank %d and %d: asked %v, not %v; %v", tt.kind, tt.rank, tt.peer, got, tt.asked, resp.Err)
		}
		if r, ok := resp.Document.(state.Reports); tt.kind == query.Reports && !tt.fails && (!ok ||
			r.Results[0].Rank != got[0]) {
			t.Errorf("%s of rank %d: %+v", tt.kind, tt.rank, resp.Document)
		}
	}
}

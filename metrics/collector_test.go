package metrics

import (
	"bytes"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/zrlmpi/zrlmpid/metrics/phases"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

var update = flag.Bool("update", false, "rewrite the golden file")

// engine returns fixed counters. Like a real engine, it has a lock.
type engine struct {
	mu    sync.Mutex
	own   state.RankCounters
	peers []state.PeerCounters
}

func (e *engine) Counters(rank func(*state.RankCounters), peer func(*state.PeerCounters)) {
	e.mu.Lock()
	own := e.own
	rank(&own)
	e.mu.Unlock()
	for i := range e.peers {
		e.mu.Lock()
		p := e.peers[i]
		peer(&p)
		e.mu.Unlock()
	}
}

func (e *engine) PeerCounters(rank int, visit func(*state.PeerCounters)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range e.peers {
		if e.peers[i].Rank == rank {
			p := e.peers[i]
			visit(&p)
		}
	}
}

var started = time.Unix(1_700_000_000, 0)

// example returns the source of a daemon that has a host, whose peers are of all kinds, and a stand-in.
func example() Source {
	host := &engine{
		own: state.RankCounters{Posted: 3, Unexpected: 2,
			AnySource: state.OldestWait{Waits: true, Awaited: protocol.SendRequest, Elapsed: 7 * time.Second}},
		peers: []state.PeerCounters{
			{Rank: 1, MessageCounts: state.MessageCounts{Sent: 5, Received: 4, Failed: 1, Retransmissions: 2},
				SentBytes: 500, ReceivedBytes: 400, Unreachable: 1, Silent: true, QueuedSends: 6, InFlight: 1,
				OldestSend: state.OldestWait{Waits: true, Awaited: protocol.ClearToSend, Elapsed: 1500 * time.Millisecond}},
			{Rank: 2, Extended: true, MessageCounts: state.MessageCounts{Sent: 9}, SentBytes: 90, InFlight: 2,
				InFlightPackets: 12, RoundTrip: 43 * time.Microsecond,
				OldestSend: state.OldestWait{Waits: true, Elapsed: time.Second},
				OldestRecv: state.OldestWait{Waits: true, Awaited: protocol.Data, Elapsed: 2 * time.Second}},
			{Rank: 3},
			{Rank: 4, MessageCounts: state.MessageCounts{Sent: 1},
				OldestSend: state.OldestWait{Waits: true, Awaited: protocol.Ack, Elapsed: time.Second}},
			{Rank: 5, MessageCounts: state.MessageCounts{Sent: 2},
				OldestSend: state.OldestWait{Waits: true, Awaited: protocol.ClearToSend, Elapsed: 3 * time.Second}},
		},
	}
	host.own.Drops[state.DropUnknownAddress] = 8
	host.own.Collectives = []collective.CallCount{
		{Collective: "Bcast", Algorithm: "binomial", Calls: 7, Bytes: 56},
		{Collective: "Reduce_scatter", Algorithm: "pairwise", Calls: 3, Failures: 1},
	}
	host.own.Disagreements = 1
	p := &host.peers[0]
	p.PacketsOut = [state.NumTypes]uint64{protocol.SendRequest: 6, protocol.Data: 11}
	p.BytesOut = [state.NumTypes]uint64{protocol.SendRequest: 192, protocol.Data: 900}
	p.PacketsIn = [state.NumTypes]uint64{protocol.Ack: 4}
	p.BytesIn = [state.NumTypes]uint64{protocol.Ack: 128}
	p.Drops[state.DropStale] = 3
	p.Events[state.EventRetransmitted] = 2
	x := &host.peers[1]
	x.Drops[state.DropStream], x.Drops[state.DropChecksum] = 1, 2
	x.Events[state.EventConnected] = 1
	recorder := phases.NewRecorder(0,
		[]phases.Peer{{}, {Profile: "cloudfpga", Kind: "fpga"}, {Profile: "extended", Kind: "software"},
			{Profile: "v0.9", Kind: "cpu"}, {Profile: "v0.9", Kind: "cpu"}, {Profile: "v0.9", Kind: "cpu"}}, 2)
	recorder.RecordMessage(sent(1, time.Microsecond), nil)
	recorder.RecordMessage(received(1, time.Microsecond), nil)
	recorder.RecordMessage(received(2, 100*time.Microsecond), nil)

	standin := &engine{peers: []state.PeerCounters{{Rank: 0, MessageCounts: state.MessageCounts{Received: 1},
		OldestRecv: state.OldestWait{Waits: true, Awaited: protocol.SendRequest, Elapsed: time.Hour}}}}
	return Source{
		Version: "1.2.3", Started: started, LostLogLines: func() uint64 { return 17 },
		AccessDenied:      func() map[string]uint64 { return map[string]uint64{"attach": 4, "control": 0} },
		WebConfigFailures: func() uint64 { return 1 },
		LastReload:        func() (bool, time.Time) { return false, started.Add(time.Second) },
		Ranks: []Rank{
			{Engine: host, Recorder: recorder, State: func() state.RankInfo {
				return state.RankInfo{
					Rank: 0, Attached: make([]state.Program, 1), SocketDrops: new(uint64(5)), ReceiveBuffer: 1 << 20,
					Offload: &state.Offload{Batches: true, Coalescing: true},
					Path:    &state.Path{Device: "eth0", Sent: 8, Received: 9, Bypassed: 1, Corrupt: 2, Full: 3},
				}
			}},
			{Engine: standin, Recorder: phases.NewRecorder(1, manyPeers(1), 2), State: func() state.RankInfo {
				return state.RankInfo{Rank: 1, Kernel: "echo", KernelState: state.KernelRunning}
			}},
		},
	}
}

// gather gathers the metrics of a source and applies the library's checks to them.
func gather(t *testing.T, src Source, native bool) []*dto.MetricFamily {
	t.Helper()
	families, err := checked(&Registry{collect: src.collect}, native)
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// checked gathers the metrics of a registry and applies the library's checks to them.
func checked(r *Registry, native bool) ([]*dto.MetricFamily, error) {
	return prometheus.Gatherers{
		prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return r.gather(native) }),
	}.Gather()
}

// TestGolden compares the metrics in text format with testdata/metrics.txt.
func TestGolden(t *testing.T) {
	var got bytes.Buffer
	for _, f := range gather(t, example(), false) {
		if f.GetName() == "zrlmpi_build_info" {
			f.Metric[0].Label = f.Metric[0].Label[2:] // omit the versions of Go and of this program
		}
		if _, err := expfmt.MetricFamilyToText(&got, f); err != nil {
			t.Fatal(err)
		}
	}
	const path = "testdata/metrics.txt"
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	g, w := strings.Split(got.String(), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(g), len(w)) {
		if i >= len(g) || i >= len(w) || g[i] != w[i] {
			t.Fatalf("line %d differs (-update rewrite the golden file):\n%s", i+1,
				strings.Join(g[i:min(i+3, len(g))], "\n"))
		}
	}
}

func TestNames(t *testing.T) {
	families := gather(t, example(), true)
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	if len(families) < len(allFamilies()) {
		t.Errorf("the example has %d families of %d", len(families), len(allFamilies()))
	}
}

func allFamilies() []*family { return families }

// TestNativeHistogramsAreServed scrapes in the same way as a Prometheus that supports native histograms.
func TestNativeHistogramsAreServed(t *testing.T) {
	registry, err := NewRegistry(example())
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(Handler(registry, nil))
	defer server.Close()
	for accept, native := range map[string]bool{
		"application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited": true,
		"application/openmetrics-text;version=1.0.0":                                                 false,
		"text/plain": false,
	} {
		req, err := http.NewRequest(http.MethodGet, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", accept)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %v, %v", accept, resp.Status, err)
		}
		if !native {
			if !strings.Contains(string(body),
				`zrlmpi_handshake_phase_seconds_bucket{direction="send",kind="fpga",phase="ack",profile="cloudfpga",rank="0",le="6.103515625e-05"} 1`) {
				t.Errorf("%s: there are no classic buckets", accept)
			}
			if strings.Contains(string(body), peerPhaseSeconds.name) {
				t.Errorf("%s: there are histograms by peer", accept)
			}
			continue
		}
		decoder := expfmt.NewDecoder(bytes.NewReader(body), expfmt.ResponseFormat(resp.Header))
		seen := 0
		for {
			var f dto.MetricFamily
			if err := decoder.Decode(&f); err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if f.GetType() != dto.MetricType_HISTOGRAM || !strings.HasPrefix(f.GetName(), "zrlmpi_") {
				continue
			}
			for _, m := range f.Metric {
				if classic := len(m.Histogram.Bucket) > 0; m.Histogram.GetSchema() != phases.Schema ||
					len(m.Histogram.PositiveSpan) == 0 ||
					classic != (f.GetName() == phaseSeconds.name) {
					t.Errorf("%s: %v", f.GetName(), m.Histogram)
				}
				seen++
			}
		}
		if seen != 4+3+3+4+3+3 {
			t.Errorf("there are %d histograms", seen)
		}
	}
}

// TestScrapesMeetMessages completes messages while other goroutines scrape.
func TestScrapesMeetMessages(t *testing.T) {
	e := &engine{peers: make([]state.PeerCounters, 8)}
	for i := range e.peers {
		e.peers[i].Rank = i + 1
	}
	recorder := phases.NewRecorder(0, manyPeers(8), 4)
	src := Source{
		Started: started, LostLogLines: func() uint64 { return 0 },
		LastReload:   func() (bool, time.Time) { return true, started },
		AccessDenied: func() map[string]uint64 { return nil }, WebConfigFailures: func() uint64 { return 0 },
		Ranks: []Rank{{Engine: e, Recorder: recorder, State: func() state.RankInfo { return state.RankInfo{} }}},
	}
	registry := &Registry{collect: src.collect}
	const rounds = 2000
	var all sync.WaitGroup
	all.Go(func() {
		for i := range rounds {
			e.mu.Lock()
			recorder.RecordMessage(sent(1+i%8, time.Duration(1+i)*time.Nanosecond), nil)
			e.mu.Unlock()
		}
	})
	for range 2 {
		all.Go(func() {
			for range 20 {
				if _, err := checked(registry, true); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	families, err := checked(registry, true)
	if err != nil {
		t.Fatal(err)
	}
	sum, peers := uint64(0), map[string]bool{}
	for _, f := range families {
		if f.GetName() != peerPhaseSeconds.name {
			continue
		}
		for _, m := range f.Metric {
			labels := map[string]string{}
			for _, l := range m.Label {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["phase"] == "total" {
				sum += m.Histogram.GetSampleCount()
				peers[labels["peer"]] = true
			}
		}
	}
	if sum != rounds || len(peers) != 5 || !peers[labelOtherPeers] {
		t.Errorf("%d messages of %d, peers %v", sum, rounds, peers)
	}
}

// TestKernelUp checks that a kernel is reported as up while it runs.
func TestKernelUp(t *testing.T) {
	src := example()
	src.Ranks[1].State = func() state.RankInfo {
		return state.RankInfo{Rank: 1, Kernel: "echo", KernelState: state.KernelFailed}
	}
	for _, f := range gather(t, src, false) {
		if f.GetName() == "zrlmpi_kernel_up" && f.Metric[0].Gauge.GetValue() == 0 {
			return
		}
	}
	t.Error("a kernel that failed is up")
}

package daemon

import (
	"runtime"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/internal/query"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/transport/shm"
	"github.com/zrlmpi/zrlmpid/udp"
)

// TestReportsOfOtherRanks checks that each rank that is not local is asked by the lowest local rank with a link
// that supports it.
func TestReportsOfOtherRanks(t *testing.T) {
	c, other := newCluster(t), newCluster(t)
	other.network = c.network
	const links = "defaults: {profile: extended, transport: udp}"
	const last = "peer: fpga, link: {profile: cloudfpga}"
	near := start(t, c.yaml(links, "run: host", "run: host", "peer: software", last))
	start(t, other.yaml(links, "peer: software", "peer: software", "run: host", last))
	reports, err := query.Get[state.Reports](within(t), near.client.Handle, query.Request{Kind: query.Reports})
	if err != nil || len(reports.Results) != 2 {
		t.Fatalf("%+v, %v", reports, err)
	}
	if a := reports.Results[0]; a.Rank != 2 || a.Reason != "" || a.Report == nil || a.Report.Rank != 2 {
		t.Errorf("%+v", a)
	}
	if a := reports.Results[1]; a.Rank != 3 || a.Reason != mpe.ErrNotExtended.Error() || a.Report != nil {
		t.Errorf("%+v", a)
	}
}

// TestHost checks that a local host is found, and that AnyRank stands for the first one.
func TestHost(t *testing.T) {
	c := newCluster(t)
	r := start(t, c.yaml("", "run: standin, kernel_options: {peer: 1}", "run: host", "run: host", "peer: fpga"))
	for _, tt := range []struct {
		rank, host int
		says       string
	}{
		{control.AnyRank, 1, ""},
		{1, 1, ""},
		{2, 2, ""},
		{0, 0, "rank 0 is a stand-in with kernel echo"},
		{3, 0, "rank 3 is not a local rank"},
		{4, 0, "rank 4 is not a local rank"},
	} {
		port, err := r.Host(tt.rank)
		if tt.says == "" && (err != nil || port.Rank() != tt.host) || tt.says != "" && (err == nil ||
			!strings.Contains(err.Error(), tt.says)) {
			t.Errorf("rank %d: %v, %v", tt.rank, port, err)
		}
	}
	for _, tt := range []struct {
		rank, peer int
		says       string
	}{
		{control.AnyRank, 3, ""},
		{0, 3, ""},
		{3, 1, "rank 3 is not a local rank"},
	} {
		err := query.Do(within(t), r.client.Handle, query.Request{Kind: query.Reset, Rank: tt.rank, Peer: tt.peer})
		if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("rank %d forgets rank %d: %v", tt.rank, tt.peer, err)
		}
	}
	without := newCluster(t)
	r = start(t, without.yaml("", "run: standin, kernel_options: {peer: 1}", "peer: fpga"))
	if port, err := r.Host(control.AnyRank); err == nil ||
		!strings.Contains(err.Error(), "no local rank has run: host") {
		t.Errorf("%v, %v", port, err)
	}
	if err := r.reset(control.AnyRank, 1); err == nil || !strings.Contains(err.Error(), "no local rank has run: host") {
		t.Error(err)
	}
}

// TestSupport checks the daemon's part of a bug report: its log and, if it keeps them, its records.
func TestSupport(t *testing.T) {
	c := newCluster(t)
	tail := func(o *Options) { o.LogTail = func() []byte { return []byte("a line\n") } }
	r := startWith(t, c.yaml("record: {spool: {size: 1MiB}}", "run: host", "peer: fpga"), tail)
	if s := r.supportInfo(); s.Log != "a line\n" || s.Records == nil || s.Records.Size != 1<<20 ||
		len(s.Records.Files) != 0 {
		t.Errorf("%+v", s)
	}
	for _, extra := range []string{"record: {spool: {size: 0}}", "record: {memory: 0}"} {
		c := newCluster(t)
		if s := start(t, c.yaml(extra, "run: host", "peer: fpga")).supportInfo(); s.Log != "" || s.Records != nil {
			t.Errorf("%s: %+v", extra, s)
		}
	}
}

// TestStatusOfConnections checks that the control socket reports how the local ranks are connected.
func TestStatusOfConnections(t *testing.T) {
	t.Setenv(udp.EnvOffload, "auto")
	c := newCluster(t)
	r := start(t, c.yaml("limits: {offload: off}\n", "run: host, link: {profile: extended}", "run: host",
		"run: standin"))
	s, err := r.client.Status(within(t))
	if err != nil {
		t.Fatal(err)
	}
	ring := 0
	if runtime.GOOS == "linux" {
		ring = shm.DefaultRing(3)
	}
	for _, local := range s.Ranks {
		o := local.Offload
		if o == nil || !o.Disabled || o.Segmentation || o.Coalescing || o.Refused != nil {
			t.Errorf("rank %d: offload %+v", local.Rank, o)
		}
		if want := local.Rank < 2; want && local.Ring != ring || !want && local.Ring != 0 {
			t.Errorf("rank %d: rings of %d bytes", local.Rank, local.Ring)
		}
		// There are three ranks, and programs can attach to two of them.
		if want := 5 > runtime.NumCPU(); local.Oversubscribed != want {
			t.Errorf("rank %d: oversubscribed is %v", local.Rank, local.Oversubscribed)
		}
	}
}

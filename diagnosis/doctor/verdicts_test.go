package doctor_test

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/diagnosis/doctor"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/bindfault"
)

// parse returns a plan with three ranks, unless more contains another list of ranks. Rank 0 is local.
func parse(t *testing.T, more string) *doctor.Plan {
	t.Helper()
	text := `
ranks:
  - {rank: 0, address: 10.9.0.1, run: host}
  - {rank: 1, address: 10.9.0.2, peer: cpu}
  - {rank: 2, address: 10.9.0.3, peer: fpga}
` + more
	if strings.HasPrefix(more, "ranks:") {
		text = more
	}
	cfg, err := config.Parse(strings.NewReader(text), "test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p := doctor.PlanFromConfig("test.yaml", cfg)
	if len(p.Problems) > 0 {
		t.Fatal(p.Problems)
	}
	return p
}

// sound returns the facts of a host on which nothing is wrong.
func sound(p *doctor.Plan) *doctor.Facts {
	f := &doctor.Facts{
		Ports: p.NeededPorts(), Paths: p.NeededPaths(),
		Buffer:  doctor.NewFact(doctor.Buffer{Granted: p.ReceiveBuffer}, nil),
		Offload: doctor.NewFact(doctor.Offload{Segmentation: true, Coalescing: true}, nil),
		Clock:   doctor.NewFact(doctor.Clock{Source: "tsc", Synchronized: doctor.NewFact(true, nil)}, nil),
		Files:   doctor.NewFact(doctor.Files{Limit: 1024}, nil),
		Interfaces: doctor.NewFact([]doctor.Interface{
			{Name: "lo", Index: 1, Loopback: true, Up: true, Carrier: true},
			{Name: "eth0", Index: 2, Up: true, Carrier: true, MTU: 1500,
				Addresses: []netip.Addr{netip.MustParseAddr("10.9.0.1")},
				Counters:  doctor.Counters{Received: 1e6, Sent: 1e6}},
		}, nil),
	}
	for i := range f.Paths {
		f.Paths[i].Route = doctor.NewFact(doctor.Route{Interface: "eth0", MTU: 1500}, nil)
		f.Paths[i].Echo = &doctor.Fact[doctor.Echo]{Value: doctor.Echo{Short: true, Long: true}}
	}
	return f
}

// daemonOf returns the status of a daemon that runs rank 0.
func daemonOf(change func(*state.Rank)) *state.Status {
	r := state.Rank{
		RankInfo: state.RankInfo{ReceiveBuffer: 16 << 20, ReceiveBufferRequested: 16 << 20,
			Offload: &state.Offload{Segmentation: true, Coalescing: true}},
		Engine: state.Engine{Size: 3,
			Peers: []state.Peer{{Rank: 1, Kind: "cpu", Address: "10.9.0.2:2718", Profile: "cloudfpga",
				Transport: "udp"}}},
	}
	if change != nil {
		change(&r)
	}
	return &state.Status{
		PID: 47, Ranks: []state.Rank{r},
		Cluster: []state.Member{{Rank: 0, Address: "10.9.0.1:2718", Role: state.RoleHost},
			{Rank: 1, Address: "10.9.0.2:2718"}, {Rank: 2, Address: "10.9.0.3:2718"}},
	}
}

func held(f *doctor.Facts) {
	f.Ports[0].Held, f.Ports[0].Holder = true, &bindfault.Process{PID: 47, Name: "zrlmpid"}
}

func TestVerdicts(t *testing.T) {
	unknown := errors.New("not permitted")
	for _, tt := range []struct {
		name    string
		config  string
		change  func(*doctor.Facts)
		status  *state.Status
		check   string
		verdict doctor.Verdict
		found   string
	}{
		{name: "held by the daemon", change: held, status: daemonOf(nil), check: "port", verdict: doctor.Right,
			found: "held by the daemon, process 47"},
		{name: "held by a process that cannot be seen", change: func(f *doctor.Facts) { f.Ports[0].Held = true },
			check: "port", verdict: doctor.Wrong, found: "another process holds udp 10.9.0.1:2718"},
		{name: "by a daemon that cannot be seen", change: func(f *doctor.Facts) { f.Ports[0].Held = true },
			status: daemonOf(nil), check: "port", verdict: doctor.Right, found: "held by the daemon"},
		{name: "by another daemon", change: held, check: "port", verdict: doctor.Wrong,
			found: "process 47 (zrlmpid) holds"},
		{name: "interfaces unknown",
			change: func(f *doctor.Facts) { f.Interfaces = doctor.NewFact[[]doctor.Interface](nil, unknown) },
			check:  "local_address", verdict: doctor.Unknown, found: "not permitted"},
		{name: "FPGA that answers short echoes only",
			change: func(f *doctor.Facts) { f.Paths[1].Echo.Value.Long = false }, check: "path_mtu",
			verdict: doctor.Unknown, found: "answers an ICMP echo request of 84 bytes"},
		{name: "no echo", change: func(f *doctor.Facts) { f.Paths[0].Echo.Value = doctor.Echo{} }, check: "path_mtu",
			verdict: doctor.Unknown, found: "does not answer ICMP"},
		{name: "echo not permitted", change: func(f *doctor.Facts) { f.Paths[0].Echo.Unknown = "not permitted" },
			check: "path_mtu", verdict: doctor.Unknown, found: "not permitted"},
		{name: "extended profile", config: "ranks: [{rank: 0, address: 10.9.0.1, run: host}, {rank: 1, address: " +
			"10.9.0.2, peer: software}]\ndefaults: {profile: extended}\n",
			change: func(f *doctor.Facts) { f.Paths[0].Route.Value.MTU = 1280 }, check: "path_mtu",
			verdict: doctor.Right},
		{name: "shorter datagrams", config: "ranks: [{rank: 0, address: 10.9.0.1, run: host}, {rank: 1, address: " +
			"10.9.0.2, peer: software}]\ndefaults: {max_datagram: 1256}\n",
			change: func(f *doctor.Facts) { f.Paths[0].Route.Value.MTU = 1284 }, check: "path_mtu",
			verdict: doctor.Right},
		{name: "buffer of the daemon", status: daemonOf(func(r *state.Rank) { r.ReceiveBuffer = 1 << 18 }),
			check: "receive_buffer", verdict: doctor.Wrong,
			found: "the daemon gets a receive buffer of 256KiB of 16MiB"},
		{name: "no offload", change: func(f *doctor.Facts) { f.Offload.Value.Segmentation = false }, check: "offload",
			verdict: doctor.Wrong, found: "segmentation (false)"},
		{name: "offload disabled", config: "limits: {offload: off}\n",
			change: func(f *doctor.Facts) { f.Offload.Value.Segmentation = false }, check: "offload",
			verdict: doctor.Right, found: "disabled"},
		{name: "offload disabled by faults",
			status: daemonOf(func(r *state.Rank) { r.Offload = &state.Offload{Disabled: true} }), check: "offload",
			verdict: doctor.Right, found: "or faults of the ranks"},
		{name: "offload refused",
			status: daemonOf(func(r *state.Rank) {
				r.Offload.Refused = []state.OffloadRefused{{Peer: 1,
					Error: "EIO"}}
			}), check: "offload", verdict: doctor.Wrong, found: "refused segmentation to rank 1: EIO"},
		{name: "no AF_XDP", check: "xdp", verdict: doctor.Right, found: "no link uses it"},
		{name: "AF_XDP possible", change: func(f *doctor.Facts) {
			f.XDP = []doctor.XDP{{Rank: 0, Device: "eth0", Driver: "mlx5_core", Queues: 8}}
		}, check: "xdp", verdict: doctor.Right, found: "rank 0 on eth0, driver mlx5_core, receive queues: 8"},
		{name: "AF_XDP filtered", config: "defaults: {path: auto}\n", change: func(f *doctor.Facts) {
			f.XDP = []doctor.XDP{{Rank: 0, Device: "eth0", Problem: "chain input has rules", Filtered: true}}
		}, check: "xdp", verdict: doctor.Wrong, found: "rank 0: chain input has rules"},
		{name: "AF_XDP past the filter", config: "defaults: {path: xdp}\n", change: func(f *doctor.Facts) {
			f.XDP = []doctor.XDP{{Rank: 0, Device: "eth0", Problem: "chain input has rules", Filtered: true}}
		}, check: "xdp", verdict: doctor.Right, found: "rank 0 on eth0"},
		{name: "AF_XDP in use", status: daemonOf(func(r *state.Rank) {
			r.Path = &state.Path{Device: "eth0", Driver: "mlx5_core", ZeroCopy: true}
		}), check: "xdp", verdict: doctor.Right, found: "AF_XDP on eth0 (mlx5_core, zero copy)"},
		{name: "AF_XDP refused", status: daemonOf(func(r *state.Rank) {
			r.Path = &state.Path{Error: "operation not permitted"}
		}), check: "xdp", verdict: doctor.Wrong, found: "rank 0: operation not permitted"},
		{name: "slow clock", change: func(f *doctor.Facts) { f.Clock.Value.Source = "hpet" }, check: "clock",
			verdict: doctor.Wrong, found: "clocksource is hpet"},
		{name: "clock not synchronized", change: func(f *doctor.Facts) { f.Clock.Value.Synchronized.Value = false },
			check: "clock", verdict: doctor.Wrong, found: "not synchronized"},
		{name: "files run out", change: func(f *doctor.Facts) { f.Files.Value.Open = 900 }, check: "open_files",
			verdict: doctor.Wrong, found: "900 files open of at most 1024"},
		{name: "corrupt packets", change: func(f *doctor.Facts) { f.Interfaces.Value[1].Counters.ReceiveErrors = 200 },
			check: "interface_drops", verdict: doctor.Wrong, found: "has lost 200 of 1000200 received"},
		{name: "few corrupt packets",
			change: func(f *doctor.Facts) { f.Interfaces.Value[1].Counters.ReceiveErrors = 20 },
			check:  "interface_drops", verdict: doctor.Right},
		{name: "address of this host elsewhere", change: func(f *doctor.Facts) {
			f.Claims.Value = []doctor.Claim{{netip.MustParseAddr("10.9.0.1"), "eth0", []string{"02:00:00:00:00:07"}}}
		}, check: "duplicate_address", verdict: doctor.Wrong,
			found: "rank 0: 10.9.0.1 is an address of this host, and the station 02:00:00:00:00:07 answers"},
		{name: "address of a peer twice", change: func(f *doctor.Facts) {
			f.Claims.Value = []doctor.Claim{{netip.MustParseAddr("10.9.0.3"), "eth0",
				[]string{"02:00:00:00:00:07", "02:00:00:00:00:08"}}}
		}, check: "duplicate_address", verdict: doctor.Wrong, found: "rank 2: several stations answer ARP requests " +
			"for 10.9.0.3 on eth0: 02:00:00:00:00:07, 02:00:00:00:00:08"},
		{name: "address of a peer once", change: func(f *doctor.Facts) {
			f.Claims.Value = []doctor.Claim{{netip.MustParseAddr("10.9.0.3"), "eth0", []string{"02:00:00:00:00:07"}},
				{Addr: netip.MustParseAddr("10.9.0.1")}}
		}, check: "duplicate_address", verdict: doctor.Right, found: "none among the 2"},
		{name: "IPv6 address elsewhere", config: "ranks: [{rank: 0, address: 'fd00::1', run: host}, {rank: 1, " +
			"address: 'fd00::2', peer: cpu}]\n", change: func(f *doctor.Facts) {
			a := netip.MustParseAddr("fd00::1")
			f.Interfaces.Value[1].Addresses, f.Interfaces.Value[1].Duplicates = []netip.Addr{a}, []netip.Addr{a}
		}, check: "duplicate_address", verdict: doctor.Wrong, found: "rank 0: another station on eth0 has fd00::1"},
		{name: "no ARP requests permitted",
			change: func(f *doctor.Facts) { f.Claims = doctor.NewFact[[]doctor.Claim](nil, unknown) },
			check:  "duplicate_address", verdict: doctor.Unknown, found: "not permitted"},
		{name: "wrong rank map",
			status: daemonOf(func(r *state.Rank) { r.Engine.Peers[0].Dropped[state.DropSourceRank] = 3 }),
			check:  "dropped_packets", verdict: doctor.Wrong, found: "rank 0, from rank 1 at 10.9.0.2:2718: dropped " +
				"3 packets with another rank than their address has (source_rank)"},
		{name: "duplicates", status: daemonOf(func(r *state.Rank) { r.Engine.Peers[0].Dropped[state.DropDuplicate] = 3 }),
			check: "dropped_packets", verdict: doctor.Right},
		{name: "never heard", status: daemonOf(func(r *state.Rank) {
			r.Engine.Peers[0].Sending = &state.Wait{State: handshake.WaitClear, WaitsFor: protocol.ClearToSend,
				Seconds: 9}
			r.Engine.Peers[0].PacketsOut[1] = 3
		}), check: "waits", verdict: doctor.Wrong, found: "10.9.0.2"},
		{name: "no daemon", check: "waits", verdict: doctor.Unknown, found: "no daemon runs"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := parse(t, tt.config)
			f := sound(p)
			if tt.change != nil {
				tt.change(f)
			}
			report := doctor.Examine(p, f, tt.status)
			for _, c := range report.Results {
				switch {
				case c.ID != tt.check:
				case c.Verdict != tt.verdict || !strings.Contains(fmt.Sprint(c.Findings), tt.found):
					t.Errorf("%+v, want %s and %q", c, tt.verdict, tt.found)
				default:
					return
				}
			}
			if !t.Failed() {
				t.Errorf("no check %s", tt.check)
			}
		})
	}
}

// TestPlanFromStatus checks that a plan without a configuration has the ranks and links of the status.
func TestPlanFromStatus(t *testing.T) {
	p := doctor.PlanFromStatus(daemonOf(nil))
	if len(p.Ranks) != 3 || !p.Ranks[0].Local || p.Ranks[1].Local || p.ReceiveBuffer != 16<<20 {
		t.Errorf("%+v", p)
	}
	paths := p.NeededPaths()
	if len(paths) != 1 || paths[0].To != netip.MustParseAddr("10.9.0.2") || paths[0].Length != 1444 || !paths[0].Fixed {
		t.Errorf("%+v", paths)
	}
	if report := doctor.Examine(p, sound(p), nil); report.HasWrong() {
		t.Error(report.Text())
	}
}

// TestQuick checks that ExamineQuick runs no check that waits.
func TestQuick(t *testing.T) {
	p := parse(t, "")
	f := sound(p)
	f.Paths[0].Route.Value.Refused = "network is unreachable"
	report := doctor.ExamineQuick(p, f, nil)
	for _, c := range report.Results {
		switch c.ID {
		case "port", "neighbour", "configuration":
			t.Errorf("%s is one", c.ID)
		}
		if (c.Verdict == doctor.Wrong) != (c.ID == "route") {
			t.Errorf("%+v", c)
		}
	}
}

// TestText checks that a fault that affects all peers takes only a few lines.
func TestText(t *testing.T) {
	r := &doctor.Report{Results: []doctor.Result{
		{ID: "a", Title: "first", Verdict: doctor.Right,
			Findings: []doctor.Finding{{Verdict: doctor.Right, Found: "fine"}}},
		{ID: "b", Title: "second", Verdict: doctor.Wrong},
	}}
	for i := range 20 {
		r.Results[1].Findings = append(r.Results[1].Findings,
			doctor.Finding{Verdict: doctor.Wrong, Found: fmt.Sprintf("rank %d", i), Action: "repair it"})
	}
	text := r.Text()
	if !strings.HasPrefix(text, "right    first: fine\nwrong    second\n         rank 0\n         -> repair it\n") ||
		!strings.HasSuffix(text, "         12 more, which --json prints\n\n1 right, 1 wrong, 0 unknown\n") {
		t.Error(text)
	}
}

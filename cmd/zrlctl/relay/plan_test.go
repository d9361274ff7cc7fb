package relay

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/config/cluster"
	"github.com/zrlmpi/zrlmpid/transport/impair"
)

func parse(t *testing.T, text string) *config.Config {
	t.Helper()
	cfg, err := config.Parse(strings.NewReader(text), "f.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

const mixed = `ranks:
  - {rank: 0, address: 127.0.0.1, run: host}
  - {rank: 1, address: 127.0.0.2, run: standin, kernel: sink, timing: default, faults: {rules: [loss 1%]}}
  - {rank: 2, address: "127.0.0.3:4000", peer: cpu}
  - {rank: 3, address: "127.0.0.4:2719", run: host, link: {profile: extended}}
`

func TestPlan(t *testing.T) {
	p, err := NewPlan(parse(t, mixed), cluster.Pool{}, "")
	if err != nil {
		t.Fatal(err)
	}
	for rank, want := range []string{
		"127.0.0.1:2718 127.27.18.1:2718", "127.0.0.2:2718 127.27.18.2:2718", "127.0.0.3:4000 127.27.18.3:4000",
		"127.0.0.4:2719 127.27.18.4:2719",
	} {
		own, seen := p.Addrs(rank)
		if got := fmt.Sprint(own, " ", seen); got != want {
			t.Errorf("rank %d: %s, want %s", rank, got, want)
		}
	}
	if p.Medium != impair.Datagrams || p.Size() != 4 {
		t.Errorf("%v, %d ranks", p.Medium, p.Size())
	}
	for _, tt := range []struct {
		local []int
		want  string
	}{
		{[]int{0}, "0 127.0.0.1:2718 host software; 1 127.27.18.2:2718  fpga; 2 127.27.18.3:4000  cpu; 3 " +
			"127.27.18.4:2719  software"},
		{[]int{1, 3}, "0 127.27.18.1:2718  software; 1 127.0.0.2:2718 standin fpga sink default loss 1%; 2 " +
			"127.27.18.3:4000  cpu; 3 127.0.0.4:2719 host software"},
	} {
		cfg, err := p.ConfigFor(tt.local)
		if err != nil {
			t.Fatal(err)
		}
		text, err := cfg.YAML()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		again := parse(t, string(text))
		for _, r := range again.Ranks {
			s := fmt.Sprint(r.Rank, " ", r.Address.AddrPort, " ", r.Run, " ", r.Peer)
			if r.Kernel.Name != "" {
				s += fmt.Sprint(" ", r.Kernel, " ", r.Timing, " ", r.Faults.Rules[0])
			}
			got = append(got, s)
		}
		if all := strings.Join(got, "; "); all != tt.want {
			t.Errorf("%v:\n%s, want\n%s", tt.local, all, tt.want)
		}
		// Ranks on loopback addresses would use shared memory.
		if tr := again.Defaults.Transport; tr == nil || *tr != config.TransportUDP {
			t.Errorf("%v: defaults.transport is %v", tt.local, tr)
		}
	}
	for rank, want := range map[int]string{2: "rank 2 has no run: in the configuration", 4: "there is no rank 4"} {
		if _, err := p.ConfigFor([]int{rank}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("rank %d: %v, want %s", rank, err, want)
		}
	}
}

func TestPlanErrors(t *testing.T) {
	const elsewhere = "ranks:\n  - {rank: 0, address: 10.0.0.1, run: host}\n  - {rank: 1, address: 10.0.0.2, peer: " +
		"software, link: {transport: tcp}}\n"
	for _, tt := range []struct{ cfg, pool, transport, want string }{
		{mixed, "", "shm", `transport "shm" cannot be relayed: use udp or tcp`},
		{mixed, "127.0.1.1-127.0.1.3", "", "has 3 addresses for 4 ranks"},
		{mixed, "127.0.0.1-127.0.0.4", "",
			"127.0.0.1 is the address of rank 0, and cannot also be an address of the relay"},
		{elsewhere, "", "tcp", "the ranks are not on loopback addresses: give addresses of this machine"},
		{elsewhere, "10.0.0.3,10.0.0.4", "", "rank 1 has link.transport tcp, but udp is relayed"},
		{elsewhere, "10.0.0.3,10.0.0.4", "tcp", ""},
		{mixed + "defaults: {transport: tcp}\n", "", "", ""},
	} {
		var pool cluster.Pool
		if tt.pool != "" {
			var err error
			if pool, err = cluster.ParsePool(tt.pool); err != nil {
				t.Fatal(err)
			}
		}
		p, err := NewPlan(parse(t, tt.cfg), pool, tt.transport)
		if tt.want == "" && (err != nil || p.Medium != impair.Streams) ||
			tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s %s: %v, want %q", tt.pool, tt.transport, err, tt.want)
		}
	}
}

package system_test

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/diagnosis/doctor"
	"github.com/zrlmpi/zrlmpid/diagnosis/doctor/system"
	"github.com/zrlmpi/zrlmpid/internal/netns/netnstest"
	"github.com/zrlmpi/zrlmpid/internal/testkit/needs"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// network consists of a host with 10.9.0.1 on eth0 and 10.9.2.1 on eth1, a router, and a far host with 10.9.1.2. In the
// host's network, the router has the address of rank 2, 10.9.0.3.
type network struct {
	t                 *testing.T
	host, router, far netnstest.Host
}

func newNetwork(t *testing.T) *network {
	t.Helper()
	n := &network{t: t}
	for _, host := range []*netnstest.Host{&n.host, &n.router, &n.far} {
		*host = netnstest.New(t, "doctor")
		for _, of := range []string{"all", "default"} {
			host.Set("net.ipv4.conf."+of+".rp_filter", "0")
		}
	}
	n.router.Set("net.ipv4.ip_forward", "1")
	wire := func(host netnstest.Host, name, port, address, gateway string) {
		host.Join(name, n.router, port)
		host.IP("addr add " + address + "/24 dev " + name)
		n.router.IP("addr add " + gateway + "/24 dev " + port)
	}
	wire(n.host, "eth0", "port0", "10.9.0.1", "10.9.0.254")
	wire(n.far, "eth0", "port1", "10.9.1.2", "10.9.1.254")
	wire(n.host, "eth1", "port2", "10.9.2.1", "10.9.2.254")
	n.host.IP("route add default via 10.9.0.254")
	n.far.IP("route add default via 10.9.1.254")
	n.router.IP("addr add 10.9.0.3/24 dev port0")
	return n
}

// bridge adds a station with the given address to the host's network.
func (n *network) bridge(address string) {
	n.t.Helper()
	n.router.IP("addr flush dev port0", "link add bridge0 type bridge", "link set bridge0 up",
		"link set port0 master bridge0",
		"addr add 10.9.0.254/24 dev bridge0", "addr add 10.9.0.3/24 dev bridge0",
		"link add station type veth peer name eth2 netns "+n.far.Name(), "link set station master bridge0",
		"link set station up")
	n.far.IP("link set eth2 up", "addr add "+address+" dev eth2")
}

// rules loads nftables rules.
func (n *network) rules(host netnstest.Host, text string) {
	n.t.Helper()
	host.Run(needs.Program(n.t, "firewalls", "nft", "nftables"), text)
}

// listen opens a UDP socket on the host.
func (n *network) listen(address string) (conn *net.UDPConn) {
	n.t.Helper()
	var err error
	n.host.Do(func() { conn, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.MustParseAddrPort(address))) })
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { conn.Close() })
	return conn
}

const sound = `
ranks:
  - {rank: 0, address: 10.9.0.1, run: host}
  - {rank: 1, address: 10.9.1.2, peer: cpu}
  - {rank: 2, address: 10.9.0.3, peer: fpga}
limits: {receive_buffer: 128KiB}
http: {listen: ""}
`

func plan(text string) *doctor.Plan {
	cfg, err := config.Parse(strings.NewReader(text), "test.yaml")
	if err != nil {
		return doctor.InvalidPlan("test.yaml", err)
	}
	return doctor.PlanFromConfig("test.yaml", cfg)
}

// examine gathers and examines the facts of the host. It replaces the clock of this machine by a sound one.
func (n *network) examine(p *doctor.Plan, status *state.Status) *doctor.Report {
	var f *doctor.Facts
	pid := 0
	if status != nil {
		pid = status.PID
	}
	n.host.Do(func() { f = system.Gather(n.t.Context(), p, pid) })
	f.Clock = doctor.NewFact(doctor.Clock{Source: "tsc", Synchronized: doctor.NewFact(true, nil)}, nil)
	return doctor.Examine(p, f, status)
}

// running returns the status of a daemon that runs rank 0 in this process.
func running() *state.Status {
	return &state.Status{
		PID: os.Getpid(), Cluster: []state.Member{{Rank: 0, Role: state.RoleHost}, {Rank: 1}, {Rank: 2}},
		Ranks: []state.Rank{{RankInfo: state.RankInfo{ReceiveBuffer: 1 << 17, ReceiveBufferRequested: 1 << 17,
			Offload: &state.Offload{Segmentation: true, Coalescing: true}}}},
	}
}

func TestSound(t *testing.T) {
	n := newNetwork(t)
	n.rules(n.host, "table inet t {\n chain c {\n type filter hook input priority 0\n policy drop\n udp dport 2718 "+
		"accept\n icmp type echo-reply accept\n }\n}\n")
	for _, c := range n.examine(plan(sound), nil).Results {
		if c.Verdict != doctor.Right && c.Findings[0].Found != "no daemon runs" {
			t.Errorf("without a daemon: %+v", c)
		}
	}
	n.listen("10.9.0.1:2718")
	for _, c := range n.examine(plan(sound), running()).Results {
		if c.Verdict != doctor.Right {
			t.Errorf("with a daemon: %+v", c)
		}
	}
}

// TestFirewall checks that a path is unknown, not wrong, if a firewall drops its echo replies, and that the action
// names the firewall rules.
func TestFirewall(t *testing.T) {
	n := newNetwork(t)
	n.rules(n.host, "table inet t {\n chain c {\n type filter hook input priority 0\n icmp type echo-reply "+
		"drop\n }\n}\n")
	report := n.examine(plan(sound), nil)
	if report.HasWrong() {
		t.Error(report.Text())
	}
	for _, c := range report.Results {
		if c.ID != "path_mtu" {
			continue
		}
		for _, f := range c.Findings {
			if f.Verdict != doctor.Unknown || !strings.Contains(f.Found, "does not answer ICMP echo requests") ||
				!strings.Contains(f.Action, "nft list ruleset") {
				t.Errorf("%+v", f)
			}
		}
	}
}

// withRank returns the sound configuration with an additional rank.
func withRank(entry string) string {
	return strings.Replace(sound, "limits:", "  - {rank: 3, "+entry+"}\nlimits:", 1)
}

// tooMany returns a configuration with more ranks than an FPGA supports.
func tooMany() string {
	var more strings.Builder
	for rank := 3; rank < 70; rank++ {
		fmt.Fprintf(&more, "  - {rank: %d, address: 10.9.1.%d, peer: software}\n", rank, rank)
	}
	return strings.Replace(sound, "limits:", more.String()+"limits:", 1)
}

// TestFaults sets up one fault at a time, and checks that it is found.
func TestFaults(t *testing.T) {
	for _, tt := range []struct {
		name   string
		config string
		setup  func(*network) *state.Status
		check  string
		found  string
	}{
		{"two ranks at one address", withRank("address: 10.9.1.2:2718, peer: software"), nil, "configuration",
			"10.9.1.2:2718 is already the address of rank 1"},
		{"FPGA and a shared address", withRank("address: 10.9.1.2:2719, peer: software"), nil, "configuration",
			"ranks 1 and 3 share 10.9.1.2, but the cluster has an FPGA (rank 2)"},
		{"more ranks than an FPGA knows", tooMany(), nil, "configuration",
			"70 ranks, but an FPGA (rank 2) supports at most 64"},
		{"address on no interface", sound, func(n *network) *state.Status {
			n.host.IP("addr del 10.9.0.1/24 dev eth0")
			return nil
		}, "local_address", "rank 0: no interface of this host has 10.9.0.1"},
		{"another host with the address", sound, func(n *network) *state.Status {
			n.router.IP("addr add 10.9.0.1/32 dev port0")
			return nil
		}, "duplicate_address", "rank 0: 10.9.0.1 is an address of this host, and the station"},
		{"two hosts with an address", sound, func(n *network) *state.Status {
			n.bridge("10.9.0.3/24")
			return nil
		}, "duplicate_address", "rank 2: several stations answer ARP requests for 10.9.0.3 on eth0"},
		{"port held", sound, func(n *network) *state.Status {
			n.listen("10.9.0.1:2718")
			return nil
		}, "port", fmt.Sprintf("rank 0: process %d (", os.Getpid())},
		{"daemon on another port", sound, func(*network) *state.Status { return running() },
			"port", "rank 0: the daemon runs, and does not hold udp 10.9.0.1:2718"},
		{"interface down", sound, func(n *network) *state.Status {
			n.host.IP("link set eth0 down")
			return nil
		}, "interface", "interface eth0 is down"},
		{"no carrier", sound, func(n *network) *state.Status {
			n.router.IP("link set port0 down")
			return nil
		}, "interface", "interface eth0 is up, and has no carrier"},
		{"no route", sound, func(n *network) *state.Status {
			n.host.IP("route del default")
			return nil
		}, "route", "to rank 1 at 10.9.1.2: there is no route: network is unreachable"},
		{"other interface", sound, func(n *network) *state.Status {
			n.host.IP("route replace default via 10.9.2.254")
			return nil
		}, "route", "packets leave by eth1, but 10.9.0.1 is an address of eth0"},
		{"reverse path filter", sound, func(n *network) *state.Status {
			n.host.IP("route replace default via 10.9.2.254")
			n.host.Set("net.ipv4.conf.eth0.rp_filter", "1")
			return nil
		}, "reverse_path", "packets of rank 1 that arrive at eth0 are dropped"},
		{"peer does not answer ARP", sound, func(n *network) *state.Status {
			n.router.IP("addr del 10.9.0.3/24 dev port0")
			return nil
		}, "neighbour", "to rank 2 at 10.9.0.3: 10.9.0.3 does not answer on eth0"},
		{"router does not answer ARP", sound, func(n *network) *state.Status {
			n.router.IP("addr del 10.9.0.254/24 dev port0")
			return nil
		}, "neighbour", "the router 10.9.0.254 does not answer on eth0"},
		{"MTU of the interface", sound, func(n *network) *state.Status {
			n.host.IP("link set eth0 mtu 1400")
			return nil
		}, "path_mtu", "to rank 2 at 10.9.0.3: the path carries packets of 1400 bytes, and the longest of the link " +
			"have 1444"},
		{"MTU behind a router", sound, func(n *network) *state.Status {
			n.router.IP("link set port1 mtu 1300")
			return nil
		}, "path_mtu", "to rank 1 at 10.9.1.2: the path carries packets of 1300 bytes"},
		{"MTU behind a silent router", sound, func(n *network) *state.Status {
			n.router.IP("link set port1 mtu 1300")
			n.rules(n.router, "table ip t {\n chain c {\n type filter hook output priority 0\n icmp type "+
				"destination-unreachable drop\n }\n}\n")
			return nil
		}, "path_mtu", "to rank 1 at 10.9.1.2: answers an ICMP echo request of 84 bytes, and not one of 1444"},
		{"receive buffer", strings.Replace(sound, "128KiB", "1GiB", 1), func(n *network) *state.Status {
			n.host.Do(func() { dropAdmin(n.t) })
			return nil
		}, "receive_buffer", "a socket of this user gets a receive buffer of"},
		{"open files", sound, func(n *network) *state.Status {
			s := running()
			s.PID = sleeper(n.t, 40)
			return s
		}, "open_files", "a process may have 40 files open"},
		{"interface without room", sound, func(n *network) *state.Status {
			flood(n)
			return nil
		}, "interface_drops", "packets to send"},
		{"receive buffer full", sound, func(n *network) *state.Status {
			fill(n, n.listen("10.9.0.1:2718"))
			return running()
		}, "socket_drops", "rank 0: its receive buffer had no room for"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel() // some faults are found only after a timeout
			n := newNetwork(t)
			var status *state.Status
			if tt.setup != nil {
				status = tt.setup(n)
			}
			report := n.examine(plan(tt.config), status)
			for _, c := range report.Results {
				if c.ID != tt.check {
					continue
				}
				for _, f := range c.Findings {
					if f.Verdict == doctor.Wrong && strings.Contains(f.Found, tt.found) && f.Action != "" {
						return
					}
				}
			}
			t.Errorf("%s does not say %q:\n%s", tt.check, tt.found, report.Text())
		})
	}
}

// dropAdmin removes CAP_NET_ADMIN from the current thread, which exits when its namespace is closed.
func dropAdmin(t *testing.T) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	err := unix.Capget(&header, &data[0])
	if err == nil {
		data[0].Effective &^= 1 << unix.CAP_NET_ADMIN
		err = unix.Capset(&header, &data[0])
	}
	if err != nil {
		t.Error(err)
	}
}

// sleeper starts a process with the given limit of open files, and returns its process ID.
func sleeper(t *testing.T, limit uint64) int {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if err := unix.Prlimit(cmd.Process.Pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: limit, Max: limit}, nil); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid
}

// flood makes eth0 lose packets: its queue holds one packet, and nothing reads from the device.
func flood(n *network) {
	n.host.IP("link del eth0")
	const device = "/dev/net/tun"
	var err error
	n.host.Do(func() {
		var fd int
		if fd, err = unix.Open(device, unix.O_RDWR|unix.O_CLOEXEC, 0); err != nil {
			return
		}
		n.t.Cleanup(func() { unix.Close(fd) })
		r, _ := unix.NewIfreq("eth0")
		r.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, r)
	})
	if err != nil {
		n.t.Fatal(err)
	}
	n.host.IP("link set eth0 txqueuelen 1 up", "addr add 10.9.0.1/24 dev eth0", "route replace default dev eth0")
	conn := n.listen("10.9.0.1:2719")
	for range 100 {
		_, _ = conn.WriteToUDPAddrPort(make([]byte, 100), netip.MustParseAddrPort("10.9.1.2:9"))
	}
}

// fill sends the socket more datagrams than its receive buffer holds.
func fill(n *network, to *net.UDPConn) {
	if err := to.SetReadBuffer(4 << 10); err != nil {
		n.t.Fatal(err)
	}
	from := n.listen("10.9.0.1:2719")
	for range 100 {
		if _, err := from.WriteToUDPAddrPort(make([]byte, 1000), netip.MustParseAddrPort("10.9.0.1:2718")); err != nil {
			n.t.Fatal(err)
		}
	}
}

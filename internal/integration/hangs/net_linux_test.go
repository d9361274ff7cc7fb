package hangs_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/diagnosis"
	"github.com/zrlmpi/zrlmpid/internal/netns/netnstest"
	"github.com/zrlmpi/zrlmpid/internal/query"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/node/statetest"
)

// hosts are three hosts, 10.9.0.1, 10.9.1.2 and 10.9.2.3, with a router between them, each in a network namespace.
type hosts struct {
	host   [3]netnstest.Host
	router netnstest.Host
}

// newHosts returns three hosts.
func newHosts(t *testing.T) *hosts {
	t.Helper()
	const what = "hangs between hosts"
	h := &hosts{router: netnstest.New(t, what)}
	for i := range h.host {
		h.host[i] = netnstest.New(t, what)
		h.host[i].Join("eth0", h.router, fmt.Sprint("port", i))
		h.host[i].IP(fmt.Sprintf("addr add 10.9.%d.%d/24 dev eth0", i, i+1),
			fmt.Sprintf("route add default via 10.9.%d.254", i))
		h.router.IP(fmt.Sprintf("addr add 10.9.%d.254/24 dev port%d", i, i))
	}
	h.router.Set("net.ipv4.ip_forward", "1")
	for i := range h.host { // the router sends no ICMP errors
		h.router.IP(fmt.Sprintf("rule add from 10.9.%d.254 blackhole", i))
	}
	return h
}

// blocks makes the router drop all packets from an address.
func (h *hosts) blocks(from string) {
	h.router.IP("rule add from " + from + " iif port" + string(from[5]) + " blackhole")
}

func (c *cluster) twoHosts(defaults string) string {
	c.net = "10.9."
	return c.text(defaults, "0.1, run: host", "1.2, run: host")
}

// TestFirewall diagnoses hangs in which a firewall drops the packets of one direction, from the beginning or later.
func TestFirewall(t *testing.T) {
	for _, tt := range []struct {
		name, defaults, drops string
		later                 bool
		programs              [2]program
		want                  want
	}{
		{"back", cloudFPGA, "10.9.1.2", false, [2]program{sends(1, 0, 4), receives(0, 0, 4)},
			want{diagnosis.PacketsBlocked, 1, 0, "", "from 10.9.1.2", "packets from rank 1 to rank 0 have never arrived"}},
		{"forth", cloudFPGA, "10.9.0.1", false, [2]program{sends(1, 0, 4), receives(0, 0, 4)},
			want{diagnosis.PacketsBlocked, 0, 1, "", "from 10.9.0.1", "packets from rank 0 to rank 1 have never arrived"}},
		{"extended", extendedUDP, "10.9.1.2", false, [2]program{allreduces(1), allreduces(1)},
			want{diagnosis.PacketsBlocked, 1, 0, "Allreduce", "from 10.9.1.2", "have never arrived"}},
		{"later", extendedUDP, "10.9.0.1", true, [2]program{sends(1, 1, long), receives(0, 1, long)},
			want{diagnosis.PacketsBlocked, 0, 1, "", "from 10.9.0.1", "packets from rank 0 to rank 1 have not arrived since"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHosts(t)
			c := newCluster(t)
			text := c.twoHosts(tt.defaults)
			c.start(h.host[0], text, 0)
			c.start(h.host[1], text, 1)
			if tt.later {
				c.exchange(0, 1)
			}
			h.blocks(tt.drops)
			for rank, program := range tt.programs {
				c.run(rank, program)
			}
			c.explained(tt.want)
		})
	}
}

// startDaemon starts a daemon in a namespace and returns a client for it.
func startDaemon(t *testing.T, n netnstest.Host, defaults, ranks string) *control.Client {
	t.Helper()
	program, err := zrlmpid()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	config, socket := filepath.Join(folder, "z.yaml"), filepath.Join(folder, "c.sock")
	text := fmt.Sprintf("control: {socket: %q}\nhttp: {listen: \"\"}\ndefaults: {%s}\n%s\n", socket, defaults, ranks)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-config", config)
	var log bytes.Buffer
	cmd.Stderr = &log
	n.Do(func() { err = cmd.Start() })
	if err != nil {
		t.Fatal(err)
	}
	client := control.NewClient(socket)
	t.Cleanup(func() {
		client.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s", &log)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), causeTime)
	defer cancel()
	if _, err := client.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	return client
}

// zrlmpid builds the daemon once, and returns its path.
var zrlmpid = sync.OnceValues(func() (string, error) {
	folder, err := os.MkdirTemp("", "hangs")
	if err != nil {
		return "", err
	}
	atEnd = append(atEnd, func() { _ = os.RemoveAll(folder) })
	path := filepath.Join(folder, "zrlmpid")
	if out, err := exec.Command("go", "build", "-o", path, "../../../cmd/zrlmpid").CombinedOutput(); err != nil {
		return "", fmt.Errorf("zrlmpid: %w\n%s", err, out)
	}
	return path, nil
})

// atEnd lists functions to call after all tests.
var atEnd []func()

func TestMain(m *testing.M) {
	if os.Getenv(envSteps) != "" {
		if err := runSteps(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	_ = flag.Set("test.parallel", "16") // hangs mostly wait
	code := statetest.Run(m)
	for _, f := range atEnd {
		f()
	}
	os.Exit(code)
}

// TestBlockedTCP diagnoses a hang in which a firewall drops the packets of a TCP connection between two daemons.
func TestBlockedTCP(t *testing.T) {
	h := newHosts(t)
	const remote, local = ", peer: software", ", run: host"
	ranks := "ranks: [{rank: 0, address: 10.9.0.1%s}, {rank: 1, address: 10.9.1.2%s}]"
	one := startDaemon(t, h.host[0], extendedTCP, fmt.Sprintf(ranks, local, remote))
	two := startDaemon(t, h.host[1], extendedTCP, fmt.Sprintf(ranks, remote, local))
	var under sync.WaitGroup
	defer under.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	exchange := func(words int) {
		under.Go(func() { _, _ = one.Send(ctx, control.SendRequest{To: 1}, bytes.NewReader(make([]byte, 4*words))) })
		under.Go(func() { _, _, _ = two.Recv(ctx, control.RecvRequest{To: 1, Words: words}) })
	}
	exchange(1)
	under.Wait()
	ask := func() (list []diagnosis.Source) {
		for _, d := range []*control.Client{one, two} {
			s, err := d.Status(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, diagnosis.Source{Status: &s})
		}
		return list
	}
	// Wait until the connection has been quiet for a second.
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for quiet := false; !quiet; <-tick.C {
		quiet = true
		for _, s := range ask() {
			heard := s.Status.Ranks[0].Engine.Peers[0].SinceLastPacket
			quiet = quiet && heard != nil && *heard > 1
		}
	}
	h.blocks("10.9.0.1")
	exchange(long)
	explained(t, want{diagnosis.PacketsBlocked, 0, 1, "", "restart rank 0",
		"packets from rank 0 to rank 1 have not arrived since"}, ask)

}

// asking returns a function that asks a daemon for its state and for the reports of ranks on other hosts.
func asking(t *testing.T, d *control.Client) func() []diagnosis.Source {
	return func() []diagnosis.Source {
		s, err := d.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		asked, err := query.Get[state.Reports](t.Context(), d.Handle, query.Request{Kind: query.Reports})
		if err != nil {
			t.Fatal(err)
		}
		return []diagnosis.Source{{Status: &s, Asked: asked.Results}}
	}
}

// TestTwoHosts checks that a hang between two hosts is explained from either host by questions over the links alone:
// the daemons serve no HTTP. The questions send no packet to an FPGA. Once packets from the second host are dropped,
// the diagnosis names its rank as one that does not answer, and the FPGA as one that cannot answer.
func TestTwoHosts(t *testing.T) {
	for _, defaults := range []string{extendedUDP, extendedTCP} {
		t.Run(defaults, func(t *testing.T) {
			h := newHosts(t)
			h.router.IP("addr add 10.9.0.77/24 dev port0")
			var fpga net.PacketConn
			var err error
			h.router.Do(func() { fpga, err = net.ListenPacket("udp", "10.9.0.77:2718") })
			if err != nil {
				t.Fatal(err)
			}
			defer fpga.Close()
			const remote, local = "peer: software", "run: host"
			ranks := "ranks: [{rank: 0, address: 10.9.0.1, %s}, {rank: 1, address: 10.9.1.2, %s}, {rank: 2, address: " +
				"10.9.0.77, peer: fpga, link: {profile: cloudfpga, transport: udp}}]"
			one := startDaemon(t, h.host[0], defaults, fmt.Sprintf(ranks, local, remote))
			two := startDaemon(t, h.host[1], defaults, fmt.Sprintf(ranks, remote, local))
			var under sync.WaitGroup
			defer under.Wait()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			under.Go(func() { _, _, _ = one.Recv(ctx, control.RecvRequest{From: 1, Words: 1}) })
			under.Go(func() { _, _, _ = two.Recv(ctx, control.RecvRequest{From: 0, To: 1, Words: 1}) })
			for _, daemon := range []*control.Client{one, two} {
				explained(t, want{diagnosis.WaitCycle, 0, anyPeer, "Recv", "have one rank send first", "cycle 0 → 1 → 0"},
					asking(t, daemon))
			}
			if err := fpga.SetReadDeadline(time.Now()); err != nil {
				t.Fatal(err)
			}
			if n, from, err := fpga.ReadFrom(make([]byte, 2000)); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("the FPGA has got %d bytes from %v, %v", n, from, err)
			}

			h.blocks("10.9.1.2")
			under.Go(func() { _, _, _ = one.Recv(ctx, control.RecvRequest{From: 2, Words: 1}) })
			reasons := map[int]string{1: mpe.ErrNoReport.Error() + ": name its daemon with --daemons",
				2: "a deployed node cannot be asked"}
			var d *diagnosis.Diagnosis
			for deadline := time.Now().Add(causeTime); time.Now().Before(deadline); {
				before := time.Now()
				if d = diagnosis.Diagnose(asking(t, one)(), after); len(d.Unknown) == 2 {
					t.Logf("after %v:\n%s", time.Since(before), d.Text())
					break
				}
			}
			for i, rank := range []int{1, 2} {
				if len(d.Unknown) != 2 || d.Unknown[i].Rank != rank || d.Unknown[i].Reason != reasons[rank] {
					t.Fatalf("%+v\n%s", d.Unknown, d.Text())
				}
			}
		})
	}
}

// TestMTU diagnoses a hang in which the path silently drops datagrams as long as DATA.
func TestMTU(t *testing.T) {
	h := newHosts(t)
	h.router.IP("link set port0 mtu 1000") // host 0 has an MTU of 1500, so the link drops its longer packets
	c := newCluster(t)
	// with offload, the virtual link would forward segments regardless of its MTU
	text := strings.Replace(c.twoHosts(cloudFPGA), "ranks:", "limits: {offload: off}\nranks:", 1)
	c.start(h.host[0], text, 0)
	c.start(h.host[1], text, 1)
	c.run(0, sends(1, 0, 5000))
	c.run(1, receives(0, 0, 5000))
	c.explained(want{diagnosis.PacketDropped, 1, 0, "", "compare the MTU",
		"of which the likeliest is that rank 1 cannot use DATA of rank 0: unexpected_payload"})
}

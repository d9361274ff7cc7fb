package xdp_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/testkit/needs"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/transporttest"
	"github.com/zrlmpi/zrlmpid/udp"
	"github.com/zrlmpi/zrlmpid/udp/xdp"
)

// pair is two ranks on the path, on hosts joined by a veth pair.
type pair struct {
	*hosts
	ends  [2]*transporttest.End
	paths [2]udp.Path
}

func newPair(t *testing.T, open udp.OpenPath) *pair {
	t.Helper()
	p := &pair{hosts: newHosts(t)}
	p.resolve(t, false)
	m := newMap(t, false)
	for rank := range p.ends {
		c, err := p.listen(udp.Config{Rank: rank, Map: m,
			OpenPath: func(local netip.AddrPort, peers []netip.AddrPort) (udp.Path, error) {
				path, err := open(local, peers)
				p.paths[rank] = path
				return path, err
			}})
		if err != nil {
			t.Fatal(err)
		}
		p.ends[rank] = transporttest.Start(t, c)
	}
	return p
}

// awaitPath sends headers in both directions until they use the path at both ends.
func (p *pair) awaitPath(t *testing.T) {
	t.Helper()
	header := bytes.Repeat([]byte{0x96}, protocol.HeaderLen)
	var before [2]state.Path
	for rank := range p.paths {
		before[rank] = p.paths[rank].State()
	}
	used := func(rank int) bool {
		now := p.paths[rank].State()
		return now.Sent > before[rank].Sent && now.Received > before[rank].Received
	}
	limit := time.Now().Add(transporttest.Timeout)
	for time.Now().Before(limit) {
		for rank, end := range p.ends {
			err := end.SendHeader(1-rank, header)
			if err != nil && !errors.Is(err, syscall.EHOSTUNREACH) && !errors.Is(err, syscall.ENETUNREACH) {
				t.Fatal(err)
			}
		}
		if used(0) && used(1) {
			return
		}
		for _, end := range p.ends {
			select {
			case <-end.RxPackets:
			case <-time.After(time.Millisecond):
			}
		}
	}
	t.Fatalf("nothing arrives by the path: %+v, %+v", p.paths[0].State(), p.paths[1].State())
}

// TestChanges changes the network under a running pair of ranks. The path follows the kernel's tables.
func TestChanges(t *testing.T) {
	p := newPair(t, xdp.Open)
	p.awaitPath(t)
	router := address(unknown, 0, false).Addr()
	for _, change := range []struct {
		name  string
		lines []string
		host  int
	}{
		{"neighbours flushed", []string{"neigh flush dev eth0"}, 0},
		{"another hardware address of the peer", []string{"link set eth0 down", "link set eth0 address 02:00:00:00:00:77",
			"link set eth0 up"}, 1},
		{"link down and up", []string{"link set eth0 down", "link set eth0 up"}, 0},
		{"MTU smaller", []string{"link set eth0 mtu 1400"}, 0},
		{"MTU back", []string{"link set eth0 mtu 1500"}, 0},
		{"a route through a router", []string{fmt.Sprintf("route add 10.9.0.2/32 via %v dev eth0", router)}, 0},
		{"no route through a router", []string{fmt.Sprintf("route del 10.9.0.2/32 via %v dev eth0", router)}, 0},
		{"stale neighbours", []string{fmt.Sprintf("neigh change %v dev eth0 nud stale", address(1, 0, false).Addr())}, 0},
	} {
		p.hosts[change.host].IP(change.lines...)
		t.Log(change.name)
		p.awaitPath(t)
	}
	for rank := range p.paths {
		if s := p.paths[rank].State(); len(s.ByKernel) != 0 {
			t.Errorf("rank %d: %+v", rank, s)
		}
	}
}

// TestStaleNeighbour checks that the kernel confirms a neighbour which only the path uses. After the peer is gone, the
// path must not send to its hardware address forever.
func TestStaleNeighbour(t *testing.T) {
	p := newPair(t, xdp.Open)
	p.awaitPath(t)
	for _, key := range []string{"delay_first_probe_time", "ucast_solicit", "retrans_time_ms"} {
		p.hosts[0].Set("net.ipv4.neigh.eth0."+key, "1")
	}
	peer := address(1, 0, false).Addr()
	// The peer's host no longer answers ARP, nor uses its address.
	p.hosts[1].IP(fmt.Sprintf("addr del %v/24 dev eth0", peer))
	p.hosts[0].IP(fmt.Sprintf("neigh change %v dev eth0 nud stale", peer))
	header := bytes.Repeat([]byte{0x96}, protocol.HeaderLen)
	limit := time.Now().Add(transporttest.Timeout)
	for len(p.paths[0].State().ByKernel) == 0 {
		if time.Now().After(limit) {
			t.Fatalf("the path still uses the neighbour: %+v", p.paths[0].State())
		}
		// Once the kernel has noticed, its socket returns an error.
		if err := p.ends[0].SendHeader(1, header); err != nil && !errors.Is(err, syscall.EHOSTUNREACH) {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
	if s := p.paths[0].State().ByKernel[0]; s.Peer != 1 || !s.Unresolved {
		t.Errorf("%+v", s)
	}
}

// TestFragmentsAndLongDatagrams checks that datagrams that the path cannot carry arrive by the kernel's socket.
func TestFragmentsAndLongDatagrams(t *testing.T) {
	h := newHosts(t)
	h.resolve(t, false)
	m := newMap(t, false)
	var ends [2]*transporttest.End
	for rank := range ends {
		cfg := udp.Config{Rank: rank, Map: m, Large: func(int) bool { return true }}
		if rank == 1 {
			cfg.OpenPath = xdp.Open
		}
		c, err := h.listen(cfg)
		if err != nil {
			t.Fatal(err)
		}
		ends[rank] = transporttest.Start(t, c)
	}
	for number, length := range []int{100, 1300, 5000, 60000, 100} {
		packet := transporttest.Packet(0, 1, uint32(number), length)
		packet.Fragment = true
		ends[0].SendAllPackets(t, 1, []mpe.Packet{packet})
		got := ends[1].Next(t)
		if want := append(packet.Header[:], packet.Payload...); !bytes.Equal(got.Bytes, want) || got.Peer != 0 {
			t.Fatalf("a packet with %d bytes of payload: received %d bytes from %d", length, len(got.Bytes), got.Peer)
		}
	}
}

// TestKilledProcess kills a process with a path. No program may stay attached.
func TestKilledProcess(t *testing.T) {
	h := newHosts(t)
	newMap(t, false) // the port of the process, which counts by itself
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		cmd := exec.Command(self, "-test.run", "^TestHelperProcess$")
		cmd.Env = append(os.Environ(), helperEnv+"=1")
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		h[0].Do(func() { err = cmd.Start() })
		if err != nil {
			t.Fatal(err)
		}
		ready := make([]byte, 6)
		if _, err := stdout.Read(ready); err != nil || string(ready) != "ready\n" {
			t.Fatalf("the process says %q, %v", ready, err)
		}
		if out := h.show(); !strings.Contains(out, "xdp") {
			t.Fatalf("no program is attached:\n%s", out)
		}
		// A second process is refused.
		c, err := h.listen(udp.Config{Rank: 0, Map: newMap(t, false), OpenPath: xdp.Open})
		if holder := fmt.Sprintf("of process %d", cmd.Process.Pid); !errors.Is(err, syscall.EBUSY) ||
			!strings.Contains(err.Error(), holder) {
			t.Errorf("a second process: %v, want EBUSY because of a program %s", err, holder)
			if err == nil {
				c.Close()
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // returns the signal
		limit := time.Now().Add(transporttest.Timeout)
		for strings.Contains(h.show(), "xdp") {
			if time.Now().After(limit) {
				t.Fatalf("the program is still attached:\n%s", h.show())
			}
		}
	}
}

// show returns the description of the device of host 0 by the program ip.
func (h *hosts) show() string { return string(h[0].Run("ip", "link", "show", "eth0")) }

const helperEnv = "ZRLMPI_TEST_XDP_HELPER"

// TestHelperProcess is the process that TestKilledProcess kills.
func TestHelperProcess(t *testing.T) {
	if os.Getenv(helperEnv) == "" {
		t.Skip("this is a part of TestKilledProcess")
	}
	c, err := udp.Listen(udp.Config{Rank: 0, Map: newMap(t, false), OpenPath: xdp.Open})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	defer c.Close()
	fmt.Println("ready")
	select {}
}

// TestLaterFilter adds a rule to the packet filter under a running rank. The path leaves everything to the kernel until
// the rule is removed.
func TestLaterFilter(t *testing.T) {
	nft := needs.Program(t, "packet filters", "nft", "nftables")
	defer xdp.SetRefreshInterval(10 * time.Millisecond)()
	p := newPair(t, xdp.OpenUnlessFiltered)
	p.awaitPath(t)
	p.hosts[0].Run(nft, "table inet later { chain in { type filter hook input priority 0; policy drop; }; }")
	for limit := time.Now().Add(transporttest.Timeout); len(p.paths[0].State().ByKernel) == 0; {
		if time.Now().After(limit) {
			t.Fatalf("the path bypasses the rule: %+v", p.paths[0].State())
		}
	}
	before := p.paths[0].State()
	for range 5 { // the rule drops them
		if err := p.ends[1].SendHeader(0, bytes.Repeat([]byte{0x96}, protocol.HeaderLen)); err != nil {
			t.Fatal(err)
		}
	}
	now := p.paths[0].State()
	if now.Received != before.Received || !strings.Contains(now.ByKernel[0].Reason, "later in") {
		t.Errorf("%+v, before %+v", now, before)
	}
	p.hosts[0].Run(nft, "delete table inet later")
	p.awaitPath(t)
}

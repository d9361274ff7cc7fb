package xdp_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/internal/testkit/needs"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/rankmap"
	"github.com/zrlmpi/zrlmpid/transport/transporttest"
	"github.com/zrlmpi/zrlmpid/udp"
	"github.com/zrlmpi/zrlmpid/udp/xdp"
)

// dialFrom opens a kernel socket of rank 1 to rank 0.
func (h *hosts) dialFrom(t *testing.T, m *rankmap.Map) net.Conn {
	t.Helper()
	var c net.Conn
	var err error
	d := net.Dialer{LocalAddr: net.UDPAddrFromAddrPort(m.Addr(1))}
	h[1].Do(func() { c, err = d.Dial("udp", m.Addr(0).String()) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// TestReusedSlot opens a rank whose slot another rank has used.
func TestReusedSlot(t *testing.T) {
	h := newHosts(t)
	h[0].IP("link set eth0 mtu 4000")
	h[1].IP("link set eth0 mtu 4000")
	h.resolve(t, false)
	keep, err := h.listen(udp.Config{Rank: 0, Map: newMap(t, false), OpenPath: xdp.Open})
	if err != nil {
		t.Fatal(err)
	}
	defer keep.Close()
	for round := range 3 {
		m := newMap(t, false)
		c, err := h.listen(udp.Config{Rank: 0, Map: m, OpenPath: xdp.Open, Large: func(int) bool { return true }})
		if err != nil {
			t.Fatal(err)
		}
		s := h.dialFrom(t, m)
		lengths := []int{100, 3000, 100}
		for i, n := range lengths {
			b := make([]byte, n)
			b[0] = byte(i)
			if _, err := s.Write(b); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10 * time.Millisecond)
		if got := c.Path().Bypassed; got != 1 {
			t.Errorf("round %d: %d datagrams bypassed", round, got)
		}
		batch := make([]mpe.RxPacket, 8)
		var order []byte
		for len(order) < len(lengths) {
			n, err := c.Poll(batch, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range batch[:n] {
				order = append(order, p.Bytes[0])
			}
		}
		for i := range order {
			if int(order[i]) != i {
				t.Errorf("round %d: order %v", round, order)
				break
			}
		}
		c.Close()
	}
}

// TestOvertaking sends a short message by the path after a long one by the kernel's socket, whose datagrams still wait
// for the device.
func TestOvertaking(t *testing.T) {
	h := newHosts(t)
	h.resolve(t, false)
	tc := needs.Program(t, "a slow device", "tc", "iproute2")
	h[0].Run(tc, "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "2mbit", "burst", "3000", "limit", "10000000")
	m := newMap(t, false)
	c, err := h.listen(udp.Config{Rank: 0, Map: m, OpenPath: xdp.Open})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r, err := h.listen(udp.Config{Rank: 1, Map: m})
	if err != nil {
		t.Fatal(err)
	}
	end := transporttest.Start(t, r)
	header := make([]byte, protocol.HeaderLen)
	payload := make([]byte, 60000)
	if err := c.SendData(1, header, payload, protocol.CPUShape()); err != nil {
		t.Fatal(err)
	}
	header[0] = 0x55
	if err := c.SendHeader(1, header); err != nil {
		t.Fatal(err)
	}
	bytes := 0
	for {
		got := end.Next(t)
		if got.Bytes[0] == 0x55 && len(got.Bytes) == 32 {
			break
		}
		bytes += len(got.Bytes)
	}
	if bytes != len(payload)+len(header) {
		t.Errorf("the short message overtook a long one after %d bytes", bytes)
	}
}

// TestLostAnnouncements makes the kernel announce more changes at once than the sockets of the path can hold. The path
// must still learn of later changes at once.
func TestLostAnnouncements(t *testing.T) {
	p := newPair(t, xdp.Open)
	p.awaitPath(t)
	lines := []string{"link add x0 type veth peer name x1", "link set x0 up", "link set x1 up"}
	for i := range 8000 {
		lines = append(lines, fmt.Sprintf("route add fd10::%x/128 dev x0", i+1))
	}
	p.hosts[0].IP(lines...)
	p.hosts[0].IP("link del x0")
	time.Sleep(200 * time.Millisecond)
	for _, change := range []struct {
		line  string
		limit int
	}{
		{"link set eth0 mtu 1400", 1400},
		{fmt.Sprintf("route add %v/32 dev eth0 mtu 1300", address(1, 0, false).Addr()), 1300},
		{fmt.Sprintf("neigh del %v dev eth0", address(1, 0, false).Addr()), 100},
	} {
		p.hosts[0].IP(change.line)
		start := time.Now()
		for p.paths[0].Carries(1, change.limit-30) && p.paths[0].Carries(1, change.limit) {
			time.Sleep(time.Millisecond)
		}
		for p.paths[0].Carries(1, change.limit) {
			time.Sleep(time.Millisecond)
		}
		if d := time.Since(start); d > time.Second {
			t.Errorf("%s: noticed after %v", change.line, d)
		}
	}
}

// TestManyAnnouncements checks that a kernel that announces changes all the time costs only a part of a processor. It
// does so for the senders of ARP requests, for example.
func TestManyAnnouncements(t *testing.T) {
	var batch bytes.Buffer
	for i := range 20_000 {
		fmt.Fprintf(&batch, "neigh replace 10.9.0.%d lladdr 02:00:00:00:%02x:01 dev eth0\n", 20+i%200, i/200)
	}
	file := filepath.Join(t.TempDir(), "batch")
	if err := os.WriteFile(file, batch.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	measure := func(h *hosts) (cost, elapsed time.Duration) {
		used := func() time.Duration {
			var u unix.Rusage
			if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
				t.Fatal(err)
			}
			return time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
		start, before := time.Now(), used()
		h[0].Run("ip", "-batch", file)
		return used() - before, time.Since(start)
	}
	other, _ := measure(newHosts(t)) // of this process, without a path
	p := newPair(t, xdp.Open)
	p.awaitPath(t)
	if cost, elapsed := measure(p.hosts); cost-other > elapsed/4 {
		t.Errorf("%v of processor time in %v; %v without a path", cost, elapsed, other)
	}
	p.awaitPath(t)
}

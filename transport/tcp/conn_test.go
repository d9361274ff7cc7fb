package tcp

import (
	"errors"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/rankmap"
	"github.com/zrlmpi/zrlmpid/transport/transporttest"
)

// soon is a back-off for tests.
func soon(int) time.Duration { return 5 * time.Millisecond }

func start(t *testing.T, cfg Config) *transporttest.End {
	t.Helper()
	if cfg.Backoff == nil {
		cfg.Backoff = soon
	}
	c, err := Listen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return transporttest.Start(t, c)
}

func TestTransport(t *testing.T) {
	transporttest.Run(t, transporttest.Kind{
		Listen: func(m *rankmap.Map, rank int) (mpe.Transport, error) {
			c, err := Listen(Config{Rank: rank, Map: m, Backoff: soon})
			if err != nil {
				return nil, err
			}
			return c, nil
		},
		FromUnknown: func(t *testing.T, from netip.Addr, to netip.AddrPort) (netip.AddrPort, mpe.RxKind) {
			conn := dial(t, from, to)
			wantClosed(t, conn)
			return conn.LocalAddr().(*net.TCPAddr).AddrPort(), mpe.RxBroken
		},
	})
}

func dial(t *testing.T, from netip.Addr, to netip.AddrPort) *net.TCPConn {
	t.Helper()
	conn, err := net.DialTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0)), net.TCPAddrFromAddrPort(to))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func wantClosed(t *testing.T, conn net.Conn) {
	t.Helper()
	conn.SetReadDeadline(time.Now().Add(transporttest.Timeout))
	n, err := conn.Read(make([]byte, 1))
	var timeout net.Error
	if n > 0 || errors.As(err, &timeout) && timeout.Timeout() {
		t.Errorf("the connection is open: read %d, %v", n, err)
	}
}

func want(t *testing.T, e *transporttest.End, kind mpe.RxKind, peer int) mpe.RxPacket {
	t.Helper()
	a := e.Next(t)
	if a.Kind != kind || a.Peer != peer {
		t.Fatalf("%+v arrived, want %d from %d", a, kind, peer)
	}
	return a
}

func request(src, dst int) []byte {
	return protocol.CloudFPGA.Append(nil,
		protocol.Header{Src: uint32(src), Dst: uint32(dst), Type: protocol.SendRequest})
}

func TestListenErrors(t *testing.T) {
	m := transporttest.Map(t, 1)
	for name, cfg := range map[string]Config{"no map": {}, "no such rank": {Map: m, Rank: 1}} {
		if c, err := Listen(cfg); err == nil {
			c.Close()
			t.Errorf("%s: no error", name)
		}
	}
	c, err := Listen(Config{Map: m})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = Listen(Config{Map: m})
	var listenErr *ListenError
	if !errors.As(err, &listenErr) || !errors.Is(err, syscall.EADDRINUSE) || listenErr.Addr != m.Addr(0) {
		t.Errorf("a taken port gives %v", err)
	}
}

func TestIPv6(t *testing.T) {
	probe, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		t.Skip("no IPv6 here:", err)
	}
	addr := probe.Addr().(*net.TCPAddr).AddrPort()
	probe.Close()
	// There is only one IPv6 loopback address, so the rank dials itself.
	m := transporttest.MapOf(t, addr)
	e := start(t, Config{Map: m})
	wantClosed(t, dial(t, addr.Addr(), addr))
	if a := want(t, e, mpe.RxBroken, mpe.UnknownPeer); a.SourceAddr.Addr() != addr.Addr() {
		t.Errorf("a connection from %v", a.SourceAddr)
	}
}

func TestSharedIPs(t *testing.T) {
	a, b := transporttest.FreeAddr(t), transporttest.FreeAddr(t)
	sibling := netip.AddrPortFrom(a.Addr(), b.Port())
	_, err := Listen(Config{Map: transporttest.MapOf(t, b, a, sibling)})
	var shared *SharedIPError
	if !errors.As(err, &shared) || shared.Rank != 1 || shared.Other != 2 ||
		!strings.Contains(err.Error(), "ranks 1 and 2 share "+a.Addr().String()) {
		t.Errorf("the error is %v", err)
	}
	// Ranks without TCP do not matter.
	m, err := rankmap.New([]rankmap.Entry{
		{Rank: 0, Addr: b, Kind: rankmap.Software}, {Rank: 1, Addr: a, Kind: rankmap.CPU},
		{Rank: 2, Addr: sibling, Kind: rankmap.CPU}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := Listen(Config{Map: m})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SendHeader(1, request(0, 1)); !errors.Is(err, ErrNoPeer) {
		t.Errorf("sending to a rank without TCP: %v", err)
	}
}

func TestCloseEndsEveryGoroutine(t *testing.T) {
	for _, profile := range []protocol.Profile{protocol.CloudFPGA, protocol.Extended} {
		closeEndsEveryGoroutine(t, profile)
	}
}

func closeEndsEveryGoroutine(t *testing.T, profile protocol.Profile) {
	m := transporttest.Map(t, 4)
	var conns []*Conn
	for rank := range 3 { // rank 3 is missing, and is dialed without success
		c, err := Listen(Config{Rank: rank, Map: m, Backoff: soon,
			Profile: func(int) protocol.Profile { return profile }})
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
	}
	for _, c := range conns { // two connections each
		batch := make([]mpe.RxPacket, 1)
		for range 2 {
			if _, err := c.Recv(batch); err != nil || batch[0].Kind != mpe.RxConnected {
				t.Fatalf("%+v, %v", batch[0], err)
			}
		}
	}
	if left := ours(); len(left) == 0 {
		t.Fatal("the check sees no goroutine")
	}
	closed := make(chan error, len(conns))
	for _, c := range conns { // in parallel, because each waits for the others to close the connection
		go func() { closed <- errors.Join(c.Close(), c.Close()) }()
	}
	for range conns {
		if err := <-closed; err != nil {
			t.Error(err)
		}
	}
	// A goroutine disappears only a moment after it has reported that it is done.
	for deadline := time.Now().Add(transporttest.Timeout); ; runtime.Gosched() {
		left := ours()
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("still running:\n%s", strings.Join(left, "\n\n"))
		}
	}
}

// ours returns the goroutines that were started by a Conn, or run its code.
func ours() []string {
	buf := make([]byte, 1<<20)
	buf = buf[:runtime.Stack(buf, true)]
	var list []string
	for _, g := range strings.Split(string(buf), "\n\n") {
		if strings.Contains(g, "tcp.(*Conn)") {
			list = append(list, g)
		}
	}
	return list
}

func TestDefaultBackoff(t *testing.T) {
	for n, most := range map[int]time.Duration{
		-1: minBackoff, 0: minBackoff, 1: minBackoff, 2: 2 * minBackoff, 3: 4 * minBackoff,
		6: 32 * minBackoff, 7: maxBackoff, 9: maxBackoff, 10: maxBackoff, 1 << 30: maxBackoff,
	} {
		seen := map[time.Duration]bool{}
		for range 50 {
			d := DefaultBackoff(n)
			seen[d] = true
			if d > most || d < most*3/4 {
				t.Errorf("attempt %d waits %v, want at most %v and at least 3/4 of it", n, d, most)
			}
		}
		if len(seen) < 2 {
			t.Errorf("attempt %d: no jitter", n)
		}
	}
}

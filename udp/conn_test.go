package udp

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/impair"
	"github.com/zrlmpi/zrlmpid/transport/rankmap"
	"github.com/zrlmpi/zrlmpid/transport/transporttest"
)

// sockets contains the opener of each kind of socket on this system.
var sockets = map[string]opener{
	"best": newSocket,
	"no offload": func(conn *net.UDPConn, peers []netip.AddrPort, cfg *Config) (socket, error) {
		cfg.NoOffload = true
		return newSocket(conn, peers, cfg)
	},
	"plain": func(conn *net.UDPConn, peers []netip.AddrPort, _ *Config) (socket, error) {
		return newPlainSocket(conn, peers)
	},
	"impaired": func(conn *net.UDPConn, peers []netip.AddrPort, cfg *Config) (socket, error) {
		var err error
		if cfg.Impair, err = impair.New(impair.Script{}, impair.Datagrams, nil); err != nil {
			return nil, err
		}
		return newImpairedSocket(conn, peers, cfg)
	},
}

func eachSocket(t *testing.T, test func(t *testing.T, open func(Config) (*Conn, error))) {
	for name, newSocket := range sockets {
		t.Run(name, func(t *testing.T) {
			test(t, func(cfg Config) (*Conn, error) { return listen(cfg, newSocket) })
		})
	}
}

func TestTransport(t *testing.T) {
	eachSocket(t, func(t *testing.T, open func(Config) (*Conn, error)) {
		transporttest.Run(t, transporttest.Kind{
			Listen: func(m *rankmap.Map, rank int) (mpe.Transport, error) {
				c, err := open(Config{Rank: rank, Map: m, Pace: func(int) Pacing {
					return Pacing{PerDatagram: 4 * time.Microsecond, OverWords: 65536}
				}})
				if err != nil {
					return nil, err
				}
				return c, nil
			},
			FromUnknown: func(t *testing.T, from netip.Addr, to netip.AddrPort) (netip.AddrPort, mpe.RxKind) {
				c := dial(t, netip.AddrPortFrom(from, 0), to)
				write(t, c, 32)
				return c.LocalAddr().(*net.UDPAddr).AddrPort(), mpe.RxDatagram
			},
		})
	})
}

func dial(t *testing.T, from, to netip.AddrPort) *net.UDPConn {
	t.Helper()
	c, err := net.DialUDP("udp", net.UDPAddrFromAddrPort(from), net.UDPAddrFromAddrPort(to))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func write(t *testing.T, c net.Conn, length int) {
	t.Helper()
	if _, err := c.Write(make([]byte, length)); err != nil {
		t.Fatal(err)
	}
}

func TestLongDatagramsAreNamed(t *testing.T) {
	eachSocket(t, func(t *testing.T, open func(Config) (*Conn, error)) {
		m := transporttest.Map(t, 2)
		c, err := open(Config{Rank: 0, Map: m})
		if err != nil {
			t.Fatal(err)
		}
		end := transporttest.Start(t, c)
		peer := dial(t, m.Addr(1), m.Addr(0))
		for _, tt := range []struct {
			length, want int
			kind         mpe.RxKind
		}{
			{0, 0, mpe.RxDatagram},
			{1, 1, mpe.RxDatagram},
			{1424, 1424, mpe.RxDatagram},
			{1425, 1424, mpe.RxTruncated},
			{slotLen, 1424, mpe.RxTruncated},
			{slotLen + 1, 1424, mpe.RxTruncated},
			{65507, 1424, mpe.RxTruncated},
			{32, 32, mpe.RxDatagram},
		} {
			write(t, peer, tt.length)
			if a := end.Next(t); a.Kind != tt.kind || len(a.Bytes) != tt.want || a.Peer != 1 {
				t.Errorf("%d bytes arrive as %d bytes, kind %d, from %d", tt.length, len(a.Bytes), a.Kind, a.Peer)
			}
		}
	})
}

// TestSourcePort checks upstream's rule that the IP address of a datagram determines its rank. The port matters only
// if several ranks share an IP address.
func TestSourcePort(t *testing.T) {
	alone, shared := transporttest.FreeAddr(t), transporttest.FreeAddr(t)
	own := transporttest.FreeAddr(t)
	sibling := netip.AddrPortFrom(shared.Addr(), transporttest.FreeAddr(t).Port())
	m := transporttest.MapOf(t, own, alone, shared, sibling)
	c, err := Listen(Config{Rank: 0, Map: m})
	if err != nil {
		t.Fatal(err)
	}
	end := transporttest.Start(t, c)
	for _, tt := range []struct {
		from netip.AddrPort
		peer int
	}{
		{alone, 1},
		{netip.AddrPortFrom(alone.Addr(), 0), 1},
		{shared, 2},
		{sibling, 3},
		{netip.AddrPortFrom(shared.Addr(), 0), mpe.UnknownPeer},
	} {
		write(t, dial(t, tt.from, own), 32)
		if a := end.Next(t); a.Peer != tt.peer {
			t.Errorf("a datagram from %v is taken for one of rank %d, want %d", a.SourceAddr, a.Peer, tt.peer)
		}
	}
}

func TestIPv6(t *testing.T) {
	probe, err := net.ListenPacket("udp6", "[::1]:0")
	if err != nil {
		t.Skip("no IPv6 here:", err)
	}
	probe.Close()
	eachSocket(t, func(t *testing.T, open func(Config) (*Conn, error)) {
		// The IP address is shared, so the port distinguishes the two ranks.
		m := transporttest.MapOf(t,
			netip.AddrPortFrom(netip.IPv6Loopback(), transporttest.FreeAddr(t).Port()),
			netip.AddrPortFrom(netip.IPv6Loopback(), transporttest.FreeAddr(t).Port()))
		var ends [2]*transporttest.End
		for rank := range ends {
			c, err := open(Config{Rank: rank, Map: m})
			if err != nil {
				t.Fatal(err)
			}
			ends[rank] = transporttest.Start(t, c)
		}
		header := protocol.CloudFPGA.Append(nil, protocol.Header{Dst: 1, Type: protocol.SendRequest})
		if err := ends[0].SendHeader(1, header); err != nil {
			t.Fatal(err)
		}
		if a := ends[1].Next(t); a.Peer != 0 || a.SourceAddr != m.Addr(0) || !bytes.Equal(a.Bytes, header) {
			t.Errorf("%+v arrived", a)
		}
	})
}

func TestListenErrors(t *testing.T) {
	m := transporttest.Map(t, 1)
	for name, cfg := range map[string]Config{
		"no map":          {},
		"no such rank":    {Map: m, Rank: 1},
		"negative buffer": {Map: m, ReceiveBuffer: -1},
		"huge buffer":     {Map: m, ReceiveBuffer: maxReceiveBuffer + 1},
	} {
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
	if !errors.As(err, &listenErr) || !errors.Is(err, syscall.EADDRINUSE) || listenErr.Rank != 0 ||
		listenErr.Addr != m.Addr(0) {
		t.Errorf("a taken port gives %v", err)
	}
}

func TestListenReleasesTheSocketOnFailure(t *testing.T) {
	m := transporttest.Map(t, 1)
	broken := errors.New("no socket today")
	_, err := listen(Config{Map: m},
		func(*net.UDPConn, []netip.AddrPort, *Config) (socket, error) { return nil, broken })
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), m.Addr(0).String()) {
		t.Errorf("the error is %v", err)
	}
	c, err := Listen(Config{Map: m})
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

func TestReceiveBuffer(t *testing.T) {
	m := transporttest.Map(t, 1)
	for cfg, want := range map[int]int{0: DefaultReceiveBuffer, 65536: 65536} {
		c, err := Listen(Config{Map: m, ReceiveBuffer: cfg})
		if err != nil {
			t.Fatal(err)
		}
		asked, granted := c.ReceiveBuffer()
		if asked != want {
			t.Errorf("asked for %d, want %d", asked, want)
		}
		// Above a modest size, the granted size depends on the machine.
		if granted <= 0 || cfg == 65536 && granted != 65536 {
			t.Errorf("granted %d of %d", granted, asked)
		}
		c.Close()
	}
}

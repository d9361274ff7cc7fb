package xdp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/internal/netns/netnstest"
	"github.com/zrlmpi/zrlmpid/internal/testkit/needs"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/rankmap"
	"github.com/zrlmpi/zrlmpid/transport/transporttest"
	"github.com/zrlmpi/zrlmpid/udp"
	"github.com/zrlmpi/zrlmpid/udp/xdp"
)

// hosts are two hosts joined by a veth pair.
type hosts [2]netnstest.Host

// address returns the address of a host.
func address(host int, port uint16, v6 bool) netip.AddrPort {
	ip := netip.AddrFrom4([4]byte{10, 9, 0, byte(1 + host)})
	if v6 {
		ip = netip.MustParseAddr(fmt.Sprintf("fd09::%d", 1+host))
	}
	return netip.AddrPortFrom(ip, port)
}

func newHosts(t testing.TB) *hosts {
	t.Helper()
	h := hosts(netnstest.Pair(t, "AF_XDP", [2]string{}))
	for i := range h {
		h[i].IP(fmt.Sprintf("addr add %v/64 dev eth0 nodad", address(i, 0, true).Addr()))
	}
	h[1].IP(fmt.Sprintf("addr add %v/24 dev eth0", address(unknown, 0, false).Addr()),
		fmt.Sprintf("addr add %v/64 dev eth0 nodad", address(unknown, 0, true).Addr()))
	return &h
}

// unknown is the number of an address of host 1 that is not in any rank map.
const unknown = 7

// listen opens the transport of a rank on the host with the same number.
func (h *hosts) listen(cfg udp.Config) (c *udp.Conn, err error) {
	h[cfg.Rank].Do(func() { c, err = udp.Listen(cfg) })
	return c, err
}

// useDriverMode makes the devices coalesce packets, so that the program is attached in the driver's mode. Frames may be
// longer than a buffer of the driver.
func (h *hosts) useDriverMode(t testing.TB) {
	t.Helper()
	for i := range h {
		h[i].IP("link set eth0 mtu 9000")
		if err := h[i].SetFeature("eth0", unix.ETHTOOL_SGRO, 1); err != nil {
			t.Fatal(err)
		}
	}
}

var ports atomic.Uint32

// newMap returns a map of rank 0 on host 0 and rank 1 on host 1, with an unused port.
func newMap(t testing.TB, v6 bool) *rankmap.Map {
	port := uint16(20000 + ports.Add(1))
	return transporttest.MapOf(t, address(0, port, v6), address(1, port, v6))
}

// resolve makes the kernels of both hosts resolve each other.
func (h *hosts) resolve(t testing.TB, v6 bool) {
	t.Helper()
	var listener net.PacketConn
	var err error
	h[1].Do(func() {
		listener, err = (&net.ListenConfig{}).ListenPacket(context.Background(), "udp", address(1, 9, v6).String())
	})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	var conn net.Conn
	h[0].Do(func() { conn, err = net.Dial("udp", address(1, 9, v6).String()) })
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 1)
	_, from, err := listener.ReadFrom(buffer)
	if err == nil {
		_, err = listener.WriteTo(buffer, from)
	}
	if err == nil {
		_, err = conn.Read(buffer)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestTransport runs the tests of all transports with one or both ends on the path.
func TestTransport(t *testing.T) {
	for _, test := range []struct {
		name   string
		byPath [2]bool
		v6     bool
		native bool
	}{
		{"both", [2]bool{true, true}, false, false},
		{"sender", [2]bool{true, false}, false, false},
		{"receiver", [2]bool{false, true}, false, false},
		{"both, IPv6", [2]bool{true, true}, true, false},
		{"both, driver's mode", [2]bool{true, true}, false, true},
		{"receiver, driver's mode", [2]bool{false, true}, false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHosts(t)
			if test.native {
				h.useDriverMode(t)
			}
			h.resolve(t, test.v6)
			open := func(m *rankmap.Map, rank int) (mpe.Transport, error) {
				cfg := udp.Config{Rank: rank, Map: m}
				if test.byPath[rank] {
					cfg.OpenPath = xdp.Open
				}
				c, err := h.listen(cfg)
				if err != nil {
					return nil, err
				}
				return c, nil
			}
			transporttest.Run(t, transporttest.Kind{
				Map:    func(t testing.TB, _ int) *rankmap.Map { return newMap(t, test.v6) },
				Listen: open,
				FromUnknown: func(t *testing.T, _ netip.Addr, to netip.AddrPort) (netip.AddrPort, mpe.RxKind) {
					var conn net.Conn
					var err error
					dialer := net.Dialer{LocalAddr: net.UDPAddrFromAddrPort(address(unknown, 0, test.v6))}
					h[1].Do(func() { conn, err = dialer.Dial("udp", to.String()) })
					if err != nil {
						t.Fatal(err)
					}
					defer conn.Close()
					if _, err := conn.Write(make([]byte, 32)); err != nil {
						t.Fatal(err)
					}
					return conn.LocalAddr().(*net.UDPAddr).AddrPort(), mpe.RxDatagram
				},
			})
			transporttest.RunPackets(t, transporttest.PacketKind{
				MaxPayload: protocol.MaxDatagram - protocol.ExtHeaderLen,
				Pair: func(t *testing.T) (a, b *transporttest.End) {
					m := newMap(t, test.v6)
					var ends [2]*transporttest.End
					for rank := range ends {
						tr, err := open(m, rank)
						if err != nil {
							t.Fatal(err)
						}
						ends[rank] = transporttest.Start(t, tr)
					}
					return ends[0], ends[1]
				},
			})
		})
	}
}

// TestCounters checks that the datagrams really take the path.
func TestCounters(t *testing.T) {
	h := newHosts(t)
	h.resolve(t, false)
	m := newMap(t, false)
	var ends [2]*transporttest.End
	var paths [2]udp.Path
	for rank := range ends {
		c, err := h.listen(udp.Config{Rank: rank, Map: m,
			OpenPath: func(local netip.AddrPort, peers []netip.AddrPort) (udp.Path, error) {
				p, err := xdp.Open(local, peers)
				paths[rank] = p
				return p, err
			}})
		if err != nil {
			t.Fatal(err)
		}
		ends[rank] = transporttest.Start(t, c)
	}
	header := bytes.Repeat([]byte{0x96}, protocol.HeaderLen)
	const n = 100
	for range n {
		if err := ends[0].SendHeader(1, header); err != nil {
			t.Fatal(err)
		}
		if got := ends[1].Next(t); !bytes.Equal(got.Bytes, header) {
			t.Fatalf("received %x", got.Bytes)
		}
	}
	sender, receiver := paths[0].State(), paths[1].State()
	if sender.Sent != n || receiver.Received != n {
		t.Errorf("sent %+v, received %+v; want %d datagrams", sender, receiver, n)
	}
}

// TestFilters refuses a path past rules of the packet filter, unless it is demanded.
func TestFilters(t *testing.T) {
	h := newHosts(t)
	h.resolve(t, false)
	nft := needs.Program(t, "packet filters", "nft", "nftables")
	for _, test := range []struct {
		rules string
		ok    bool
	}{
		{"add table inet empty", true},
		{"add chain inet empty in { type filter hook input priority 0; policy accept; }", true},
		{"add chain inet empty other", true},
		{"add rule inet empty other udp dport 2718 drop", true}, // no chain jumps there
		{"add rule inet empty in udp dport 53 drop", false},
		{"flush chain inet empty in", true},
		{"add chain inet empty out { type filter hook output priority 0; policy drop; }", false},
	} {
		h[0].Run(nft, test.rules)
		m := newMap(t, false)
		cfg := udp.Config{Rank: 0, Map: m, OpenPath: xdp.OpenUnlessFiltered}
		c, err := h.listen(cfg)
		if err == nil {
			c.Close()
		}
		if test.ok != (err == nil) || !test.ok && !errors.Is(err, xdp.ErrFiltered) {
			t.Errorf("after %q: %v", test.rules, err)
		}
		cfg.OpenPath = xdp.Open
		if c, err = h.listen(cfg); err != nil {
			t.Fatalf("after %q, Open: %v", test.rules, err)
		}
		c.Close()
	}
}

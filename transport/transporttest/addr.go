package transporttest

import (
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"testing"

	"github.com/zrlmpi/zrlmpid/transport/rankmap"
)

var addrs atomic.Uint32

// FreeAddr returns a loopback address whose port is free for UDP and TCP. All IPs differ, within a process and between
// processes, so that packages can be tested in parallel.
func FreeAddr(t testing.TB) netip.AddrPort {
	t.Helper()
	n := addrs.Add(1)
	ip := netip.AddrFrom4([4]byte{127, byte(16 + os.Getpid()%200), byte(n / 250), byte(1 + n%250)})
	for range 20 {
		conn, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(ip, 0)))
		if err != nil {
			t.Skipf("this system does not have all of 127.0.0.0/8: %v", err)
		}
		addr := conn.LocalAddr().(*net.UDPAddr).AddrPort()
		conn.Close()
		if ln, err := net.Listen("tcp4", addr.String()); err == nil {
			ln.Close()
			return addr
		}
	}
	t.Fatal("no port is free")
	return netip.AddrPort{}
}

// Map returns a map of n local software ranks at free addresses.
func Map(t testing.TB, n int) *rankmap.Map {
	t.Helper()
	addrs := make([]netip.AddrPort, n)
	for i := range addrs {
		addrs[i] = FreeAddr(t)
	}
	return MapOf(t, addrs...)
}

// MapOf returns a map of local software ranks at the given addresses.
func MapOf(t testing.TB, addrs ...netip.AddrPort) *rankmap.Map {
	t.Helper()
	var entries []rankmap.Entry
	for rank, addr := range addrs {
		entries = append(entries, rankmap.Entry{Rank: rank, Addr: addr, Kind: rankmap.Software})
	}
	m, err := rankmap.New(entries)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

package integration_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/config/cluster"
	"github.com/zrlmpi/zrlmpid/internal/netns/netnstest"
	"github.com/zrlmpi/zrlmpid/udp"
	"github.com/zrlmpi/zrlmpid/udp/xdp"
)

// TestIntegrityPastTheKernel is TestIntegrity over AF_XDP. The ranks are on one host, and the relay on another one.
func TestIntegrityPastTheKernel(t *testing.T) {
	messages := integrityMessages(t)
	if messages < fewMessages {
		messages /= 4
	}
	testIntegrityUDP(t, messages, func(t *testing.T, ranks int, rules ...string) *integrity {
		const relayed4 = "10.9.82.0/24"
		hosts := netnstest.Pair(t, "integrity past the kernel", [2]string{})
		hosts[0].IP("route add " + relayed4 + " via 10.9.0.2")
		hosts[1].IP("route add 10.9.81.0/24 via 10.9.0.1", "route add local "+relayed4+" dev lo")
		entries := make([]config.Rank, ranks)
		for rank := range entries {
			addr := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 9, 81, byte(rank + 1)}), 2718)
			entries[rank] = config.Rank{Rank: rank, Address: config.Address{AddrPort: addr}, Run: config.RunHost}
			hosts[0].IP(fmt.Sprintf("addr add %v/32 dev eth0", addr.Addr()))
		}
		pool, err := cluster.ParsePool(relayed4)
		if err != nil {
			t.Fatal(err)
		}
		x := &integrity{t: t}
		x.relay, x.maps = relayedOn(t, hosts[1].Do, pool, config.New(entries...), "udp", rules...)
		x.listen = func(cfg udp.Config) (conn *udp.Conn, err error) {
			cfg.OpenPath = xdp.Open
			hosts[0].Do(func() { conn, err = udp.Listen(cfg) })
			return conn, err
		}
		return x
	})
}

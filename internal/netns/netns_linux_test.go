package netns_test

import (
	"net"
	"testing"

	"github.com/zrlmpi/zrlmpid/internal/netns"
	"github.com/zrlmpi/zrlmpid/internal/testkit/needs"
)

// Two namespaces share a link that the process does not see.
func TestNamespace(t *testing.T) {
	needs.Root(t, "network namespaces", "can create them")
	needs.Program(t, "network namespaces", "ip", "iproute2")
	var hosts [2]*netns.Namespace
	for i := range hosts {
		h, err := netns.New()
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		hosts[i] = h
	}
	before := devices(t)
	if err := hosts[0].RunIP("link add wire0 type veth peer name wire0 netns no-such", "link set lo up"); err == nil {
		t.Error("ip has failed, and there is no error")
	}
	if err := netns.Join(hosts[0], hosts[1], "wire0 mtu 1400", "wire0"); err != nil {
		t.Fatal(err)
	}
	for i, h := range hosts {
		h.Do(func() {
			d, err := net.InterfaceByName("wire0")
			if mtu := 1400 + 100*i; err != nil || d.MTU != mtu || d.Flags&net.FlagUp == 0 {
				t.Errorf("host %d: %+v, %v; want an MTU of %d", i, d, err, mtu)
			}
		})
	}
	if after := devices(t); after != before {
		t.Errorf("the process had %d devices, and has %d", before, after)
	}
	if err := hosts[0].Set("net.ipv4.no_such", "1"); err == nil {
		t.Error("there is no such setting, and no error")
	}
	if err := hosts[0].Set("net.ipv4.ip_forward", "1"); err != nil {
		t.Error(err)
	}
}

func devices(t *testing.T) int {
	t.Helper()
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

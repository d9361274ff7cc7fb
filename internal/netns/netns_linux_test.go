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
	add := "link add wire0 type veth peer name wire0 netns "
	if err := hosts[0].RunIP(add+"no-such", "link set lo up"); err == nil {
		t.Error("ip has failed, and there is no error")
	}
	if err := hosts[0].RunIP(add + hosts[1].Name()); err != nil {
		t.Fatal(err)
	}
	for _, h := range hosts {
		h.Do(func() {
			if _, err := net.InterfaceByName("wire0"); err != nil {
				t.Error(err)
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

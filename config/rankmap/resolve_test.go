package rankmap

import (
	"errors"
	"net/netip"
	"testing"
)

func TestResolve(t *testing.T) {
	v4 := mustNew(t,
		entry(0, "10.1.1.1:2718", CPU),
		entry(1, "10.1.1.9:2718", Software),
		entry(2, "10.1.1.9:2719", Software))
	v6 := mustNew(t, entry(0, "[fe80::1%eth0]:2718", Software), entry(1, "[fd00::1]:2718", Software))
	for _, tt := range []struct {
		m    *Map
		from string
		rank int
		how  Match
	}{
		{v4, "10.1.1.1:2718", 0, ByIP},
		{v4, "10.1.1.1:40000", 0, ByIP},
		{v4, "[::ffff:10.1.1.1]:5", 0, ByIP},
		{v4, "10.1.1.9:2718", 1, ByAddrPort},
		{v4, "10.1.1.9:2719", 2, ByAddrPort},
		{v4, "[::ffff:10.1.1.9]:2719", 2, ByAddrPort},
		{v4, "10.1.1.9:2720", NoRank, NoMatch},
		{v4, "10.1.1.2:2718", NoRank, NoMatch},
		{v4, "[fd00::1]:2718", NoRank, NoMatch},
		{v6, "[fe80::1]:2718", 0, ByIP},
		{v6, "[fe80::1%2]:1", 0, ByIP},
		{v6, "[fd00::1]:9", 1, ByIP},
		{v6, "10.1.1.1:2718", NoRank, NoMatch},
	} {
		rank, how := tt.m.Resolve(netip.MustParseAddrPort(tt.from))
		if rank != tt.rank || how != tt.how {
			t.Errorf("Resolve(%s) = %d by %v, want %d by %v", tt.from, rank, how, tt.rank, tt.how)
		}
	}
	if rank, how := v4.Resolve(netip.AddrPort{}); rank != NoRank || how != NoMatch {
		t.Errorf("the zero address resolves to %d by %v", rank, how)
	}
}

func TestResolveDoesNotAllocate(t *testing.T) {
	m := mustNew(t, software(64)...)
	from := netip.MustParseAddrPort("[::ffff:10.1.0.33]:9")
	if n := testing.AllocsPerRun(100, func() {
		if rank, _ := m.Resolve(from); rank != 32 {
			t.Errorf("resolved to %d", rank)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestAssignPorts(t *testing.T) {
	ip := netip.MustParseAddr
	got, err := AssignPorts([]netip.Addr{ip("10.1.1.1"), ip("10.1.1.9"), ip("::ffff:10.1.1.1"), ip("10.1.1.1"), ip("10.1.1.9")}, 2718)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"10.1.1.1:2718", "10.1.1.9:2718", "10.1.1.1:2719", "10.1.1.1:2720", "10.1.1.9:2719"}
	for i := range want {
		if got[i].String() != want[i] {
			t.Errorf("rank %d is at %v, want %s", i, got[i], want[i])
		}
	}
	_, err = AssignPorts([]netip.Addr{ip("10.1.1.1"), ip("10.1.1.1")}, 65535)
	var e *Error
	if !errors.As(err, &e) || e.Rank != 1 || e.Mistake != BadAddress {
		t.Errorf("ports beyond 65535 give %v", err)
	}
}

func TestMatchNames(t *testing.T) {
	for m, name := range map[Match]string{NoMatch: "none", ByIP: "ip", ByAddrPort: "ip_port", 9: "match(9)"} {
		if m.String() != name {
			t.Errorf("%d prints as %q, want %q", m, m, name)
		}
	}
}

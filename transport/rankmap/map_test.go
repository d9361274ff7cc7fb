package rankmap

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

func entry(rank int, addr string, kind Kind) Entry {
	ap, _ := netip.ParseAddrPort(addr)
	return Entry{Rank: rank, Addr: ap, Kind: kind}
}

// software returns n ranks with distinct IPs.
func software(n int) []Entry {
	entries := make([]Entry, n)
	for i := range entries {
		entries[i] = entry(i, fmt.Sprintf("10.1.%d.%d:2718", i/200, 1+i%200), Software)
	}
	return entries
}

func mustNew(t testing.TB, entries ...Entry) *Map {
	t.Helper()
	m, err := New(entries)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestMap(t *testing.T) {
	m := mustNew(t,
		entry(1, "10.1.1.2:2718", FPGA),
		Entry{Rank: 0, Addr: netip.MustParseAddrPort("[::ffff:10.1.1.1]:2718"), Kind: Software})
	if m.Size() != 2 {
		t.Errorf("Size() = %d", m.Size())
	}
	if got := m.Addr(0).String(); got != "10.1.1.1:2718" {
		t.Errorf("the IPv4-mapped address came out as %s", got)
	}
	if m.Kind(1) != FPGA || m.Kind(0) != Software {
		t.Errorf("kinds are %v and %v", m.Kind(0), m.Kind(1))
	}
	for _, rank := range []int{-1, 2} {
		if m.Has(rank) || m.Addr(rank).IsValid() || m.Kind(rank) != "" {
			t.Errorf("rank %d is in the map", rank)
		}
	}
	entries := m.Entries()
	if len(entries) != 2 || entries[0].Rank != 0 {
		t.Errorf("Entries() = %v", entries)
	}
	entries[0].Kind = CPU
	if m.Kind(0) != Software {
		t.Error("changing the result of Entries changed the map")
	}
}

func TestNewNamesTheMistake(t *testing.T) {
	for _, tt := range []struct {
		name    string
		entries []Entry
		text    string
	}{
		{"empty", nil, "no ranks"},
		{"gap", []Entry{entry(0, "10.0.0.1:1", CPU), entry(2, "10.0.0.2:1", CPU)}, "0 to 1 without a gap"},
		{"negative", []Entry{entry(-1, "10.0.0.1:1", CPU)}, "rank -1"},
		{"twice", []Entry{entry(0, "10.0.0.1:1", CPU), entry(0, "10.0.0.2:1", CPU)}, "10.0.0.1:1 and at 10.0.0.2:1"},
		{"no kind", []Entry{entry(0, "10.0.0.1:1", "")}, "fpga, cpu or software"},
		{"unknown kind", []Entry{entry(0, "10.0.0.1:1", "gpu")}, "no kind"},
		{"no address", []Entry{entry(0, "", CPU)}, "no IP address"},
		{"unspecified", []Entry{entry(0, "0.0.0.0:2718", CPU)}, "unspecified address"},
		{"unspecified, mapped", []Entry{entry(0, "[::ffff:0.0.0.0]:2718", CPU)}, "unspecified address"},
		{"unspecified IPv6", []Entry{entry(0, "[::]:2718", CPU)}, "unspecified address"},
		{"multicast", []Entry{entry(0, "224.0.0.1:2718", CPU)}, "multicast"},
		{"broadcast", []Entry{entry(0, "255.255.255.255:2718", CPU)}, "broadcast"},
		{"port 0", []Entry{entry(0, "10.0.0.1:0", CPU)}, "port 0"},
		{"same address", []Entry{entry(0, "10.0.0.1:1", CPU), entry(1, "[::ffff:10.0.0.1]:1", CPU)},
			"ranks 0 and 1 are both at 10.0.0.1:1"},
		{"families", []Entry{entry(0, "10.0.0.1:1", CPU), entry(1, "[fd00::1]:1", CPU)}, "cannot reach each other"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := New(tt.entries)
			if m != nil {
				t.Error("a map came with the error")
			}
			if err == nil || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("%v does not say %q", err, tt.text)
			}
		})
	}
}

func TestNewReportsEveryMistake(t *testing.T) {
	_, err := New([]Entry{entry(0, "0.0.0.0:1", CPU), entry(1, "10.0.0.1:0", "")})
	for _, want := range []string{"rank 0: 0.0.0.0:1 is the unspecified address", "rank 1 has no kind"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in %q", want, err)
		}
	}
}

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
	}{
		{v4, "10.1.1.1:2718", 0},
		{v4, "10.1.1.1:40000", 0},
		{v4, "[::ffff:10.1.1.1]:5", 0},
		{v4, "10.1.1.9:2718", 1},
		{v4, "10.1.1.9:2719", 2},
		{v4, "[::ffff:10.1.1.9]:2719", 2},
		{v4, "10.1.1.9:2720", NoRank},
		{v4, "10.1.1.2:2718", NoRank},
		{v4, "[fd00::1]:2718", NoRank},
		{v6, "[fe80::1]:2718", 0},
		{v6, "[fe80::1%2]:1", 0},
		{v6, "[fd00::1]:9", 1},
		{v6, "10.1.1.1:2718", NoRank},
	} {
		if rank := tt.m.Resolve(netip.MustParseAddrPort(tt.from)); rank != tt.rank {
			t.Errorf("Resolve(%s) = %d, want %d", tt.from, rank, tt.rank)
		}
	}
	if rank := v4.Resolve(netip.AddrPort{}); rank != NoRank {
		t.Errorf("the zero address resolves to %d", rank)
	}
}

func TestResolveDoesNotAllocate(t *testing.T) {
	m := mustNew(t, software(64)...)
	from := netip.MustParseAddrPort("[::ffff:10.1.0.33]:9")
	if n := testing.AllocsPerRun(100, func() {
		if rank := m.Resolve(from); rank != 32 {
			t.Errorf("resolved to %d", rank)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

package rankmap

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

func entry(rank int, addr string, kind Kind) Entry {
	ap, _ := netip.ParseAddrPort(addr)
	return Entry{Rank: rank, Addr: ap, Kind: kind}
}

// software returns n ranks, each at an IP of its own.
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
		Entry{Rank: 0, Addr: netip.MustParseAddrPort("[::ffff:10.1.1.1]:2718"), Kind: Software, Local: true})
	if m.Size() != 2 {
		t.Errorf("Size() = %d", m.Size())
	}
	if got := m.Addr(0).String(); got != "10.1.1.1:2718" {
		t.Errorf("the IPv4-mapped address came out as %s", got)
	}
	if m.Kind(1) != FPGA || m.Kind(0) != Software {
		t.Errorf("kinds are %v and %v", m.Kind(0), m.Kind(1))
	}
	if !m.Local(0) || m.Local(1) {
		t.Error("wrong ranks are local")
	}
	for _, rank := range []int{-1, 2} {
		if m.Has(rank) || m.Addr(rank).IsValid() || m.Kind(rank) != 0 || m.Local(rank) {
			t.Errorf("rank %d is in the map", rank)
		}
	}
	entries := m.Entries()
	if len(entries) != 2 || entries[0].Rank != 0 {
		t.Errorf("Entries() = %v", entries)
	}
	entries[0].Kind = CPU
	if m.Kind(0) != Software {
		t.Error("changing what Entries returned changed the map")
	}
}

func TestNewNamesTheMistake(t *testing.T) {
	for _, tt := range []struct {
		name        string
		entries     []Entry
		mistake     Mistake
		rank, other int
		text        string
	}{
		{"empty", nil, Empty, NoRank, NoRank, "no ranks"},
		{"gap", []Entry{entry(0, "10.0.0.1:1", CPU), entry(2, "10.0.0.2:1", CPU)}, BadRank, 2, NoRank, "0 to 1 without a gap"},
		{"negative", []Entry{entry(-1, "10.0.0.1:1", CPU)}, BadRank, -1, NoRank, "rank -1"},
		{"twice", []Entry{entry(0, "10.0.0.1:1", CPU), entry(0, "10.0.0.2:1", CPU)}, DuplicateRank, 0, 0, "10.0.0.1:1 and at 10.0.0.2:1"},
		{"no kind", []Entry{entry(0, "10.0.0.1:1", 0)}, BadKind, 0, NoRank, "fpga, cpu or software"},
		{"unknown kind", []Entry{entry(0, "10.0.0.1:1", 9)}, BadKind, 0, NoRank, "no kind"},
		{"no address", []Entry{entry(0, "", CPU)}, BadAddress, 0, NoRank, "no IP address"},
		{"unspecified", []Entry{entry(0, "0.0.0.0:2718", CPU)}, BadAddress, 0, NoRank, "any address"},
		{"unspecified, mapped", []Entry{entry(0, "[::ffff:0.0.0.0]:2718", CPU)}, BadAddress, 0, NoRank, "any address"},
		{"unspecified IPv6", []Entry{entry(0, "[::]:2718", CPU)}, BadAddress, 0, NoRank, "any address"},
		{"multicast", []Entry{entry(0, "224.0.0.1:2718", CPU)}, BadAddress, 0, NoRank, "multicast"},
		{"broadcast", []Entry{entry(0, "255.255.255.255:2718", CPU)}, BadAddress, 0, NoRank, "broadcast"},
		{"port 0", []Entry{entry(0, "10.0.0.1:0", CPU)}, BadAddress, 0, NoRank, "port 0"},
		{"same address", []Entry{entry(0, "10.0.0.1:1", CPU), entry(1, "[::ffff:10.0.0.1]:1", CPU)}, SameAddress, 0, 1, "ranks 0 and 1 are both at 10.0.0.1:1"},
		{"families", []Entry{entry(0, "10.0.0.1:1", CPU), entry(1, "[fd00::1]:1", CPU)}, MixedFamilies, 0, 1, "cannot reach each other"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := New(tt.entries)
			if m != nil {
				t.Error("a map came with the error")
			}
			wantError(t, err, tt.mistake, tt.rank, tt.other, tt.text)
		})
	}
}

func wantError(t *testing.T, err error, mistake Mistake, rank, other int, text string) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("the error is %v", err)
	}
	if e.Mistake != mistake || e.Rank != rank || e.Other != other {
		t.Errorf("got %s of ranks %d and %d, want %s of %d and %d", e.Mistake, e.Rank, e.Other, mistake, rank, other)
	}
	if !strings.Contains(err.Error(), text) {
		t.Errorf("%q does not say %q", err, text)
	}
}

func TestNewReportsEveryMistake(t *testing.T) {
	_, err := New([]Entry{entry(0, "0.0.0.0:1", CPU), entry(1, "10.0.0.1:0", 0)})
	for _, want := range []Mistake{BadAddress, BadKind} {
		if !errors.Is(err, &Error{Mistake: want}) {
			t.Errorf("%s is missing in %q", want, err)
		}
	}
	if errors.Is(err, &Error{Mistake: SharedIP}) {
		t.Error("errors.Is matches a mistake that was not made")
	}
}

func TestKindNames(t *testing.T) {
	for kind, name := range map[Kind]string{FPGA: "fpga", CPU: "cpu", Software: "software"} {
		if kind.String() != name {
			t.Errorf("%d prints as %q", kind, kind)
		}
		if got, err := ParseKind(name); got != kind || err != nil {
			t.Errorf("ParseKind(%q) = %v, %v", name, got, err)
		}
	}
	for _, name := range []string{"", "FPGA", "gpu"} {
		if _, err := ParseKind(name); err == nil {
			t.Errorf("ParseKind(%q) took it", name)
		}
	}
	if Kind(7).String() != "kind(7)" {
		t.Error(Kind(7).String())
	}
}

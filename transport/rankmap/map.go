package rankmap

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// Kind is the kind of node that runs a rank. It determines how the rank's peers expect it to behave.
type Kind = state.Kind

// Kinds of ranks.
const (
	FPGA     = state.KindFPGA
	CPU      = state.KindCPU
	Software = state.KindSoftware
)

// NoRank is what Resolve returns for an address that is not in the map.
const NoRank = -1

// Entry is one rank of a cluster.
type Entry struct {
	// Rank counts from 0.
	Rank int
	// Addr is the address that the rank sends from and listens on, for both UDP and TCP.
	Addr netip.AddrPort
	Kind Kind
}

// Map is an immutable rank map. Its methods are safe for concurrent use, and accept ranks outside of the map.
type Map struct {
	entries []Entry
	// byIP maps an IP to its rank, or to sharedIP if several ranks share it.
	byIP   map[netip.Addr]int
	byAddr map[netip.AddrPort]int
}

const sharedIP = -2

// New returns a map of the given entries, which may be in any order. If entries are invalid or ambiguous, the error
// joins all problems. New does not check the limits of deployed nodes; config.Config.Validate does.
func New(entries []Entry) (*Map, error) {
	m := &Map{
		entries: make([]Entry, len(entries)),
		byIP:    make(map[netip.Addr]int, len(entries)),
		byAddr:  make(map[netip.AddrPort]int, len(entries)),
	}
	if len(entries) == 0 {
		return nil, errors.New("rank map: no ranks listed: list every rank of the cluster")
	}
	var mistakes []error
	seen := make([]bool, len(entries))
	for _, e := range entries {
		switch {
		case e.Rank < 0 || e.Rank >= len(entries):
			mistakes = append(mistakes, fmt.Errorf(
				"rank map: rank %d is out of range with %d ranks: number the ranks 0 to %d without a gap", e.Rank,
				len(entries), len(entries)-1))
		case seen[e.Rank]:
			mistakes = append(mistakes, fmt.Errorf(
				"rank map: rank %d is listed twice, at %v and at %v: remove or renumber one", e.Rank,
				m.entries[e.Rank].Addr, e.Addr))
		default:
			seen[e.Rank] = true
			e.Addr = netip.AddrPortFrom(e.Addr.Addr().Unmap(), e.Addr.Port())
			m.entries[e.Rank] = e
			mistakes = append(mistakes, e.check())
		}
	}
	if err := errors.Join(mistakes...); err != nil {
		return nil, err
	}
	for _, e := range m.entries {
		mistakes = append(mistakes, m.addToIndexes(e))
	}
	if err := errors.Join(mistakes...); err != nil {
		return nil, err
	}
	return m, nil
}

// addToIndexes adds the entry e to the maps that are indexed by address.
func (m *Map) addToIndexes(e Entry) error {
	if first := m.entries[0]; first.Addr.Addr().Is4() != e.Addr.Addr().Is4() {
		return fmt.Errorf("rank map: rank %d has the address %v and rank %d has %v: IPv4 and IPv6 addresses cannot "+
			"reach each other: use one family",
			first.Rank, first.Addr, e.Rank, e.Addr)
	}
	key := sourceKey(e.Addr)
	if other, ok := m.byAddr[key]; ok {
		return fmt.Errorf("rank map: ranks %d and %d are both at %v: give each its own IP address, or at least "+
			"its own port", other, e.Rank, e.Addr)
	}
	m.byAddr[key] = e.Rank
	if _, taken := m.byIP[key.Addr()]; taken {
		m.byIP[key.Addr()] = sharedIP
	} else {
		m.byIP[key.Addr()] = e.Rank
	}
	return nil
}

// check returns an error if the entry is invalid, regardless of other entries.
func (e *Entry) check() error {
	ip := e.Addr.Addr()
	var what string
	switch {
	case e.Kind != FPGA && e.Kind != CPU && e.Kind != Software:
		return fmt.Errorf("rank map: rank %d has no kind: set it to %v, %v or %v", e.Rank, FPGA, CPU, Software)
	case !ip.IsValid():
		return fmt.Errorf("rank map: rank %d has no IP address", e.Rank)
	case ip.IsUnspecified():
		what = "is the unspecified address; peers identify a rank by its IP address, so give the address that they see"
	case ip.IsMulticast():
		what = "is a multicast address; give the rank's own address"
	case ip == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		what = "is the broadcast address; give the rank's own address"
	case e.Addr.Port() == 0:
		what = "has port 0, which peers cannot send to; the default port is 2718"
	default:
		return nil
	}
	return fmt.Errorf("rank map: rank %d: %v %s", e.Rank, e.Addr, what)
}

// Size returns the number of ranks. They are numbered 0 to Size()-1.
func (m *Map) Size() int { return len(m.entries) }

// Has reports whether rank is in the map.
func (m *Map) Has(rank int) bool { return rank >= 0 && rank < len(m.entries) }

// Entry returns the entry of rank, or a zero Entry if it is not in the map.
func (m *Map) Entry(rank int) Entry {
	if !m.Has(rank) {
		return Entry{}
	}
	return m.entries[rank]
}

// Addr returns the address of rank. An IPv4-mapped IPv6 address is returned as an IPv4 address. The result is
// invalid if rank is not in the map.
func (m *Map) Addr(rank int) netip.AddrPort { return m.Entry(rank).Addr }

// Kind returns the kind of rank, or "" if it is not in the map.
func (m *Map) Kind(rank int) Kind { return m.Entry(rank).Kind }

// Entries returns a copy of the entries in rank order.
func (m *Map) Entries() []Entry { return slices.Clone(m.entries) }

// Resolve returns the rank that sends from the given address, or NoRank. If only one rank uses the IP, Resolve ignores
// the port, as upstream does; if several ranks share the IP, the port decides. It treats an IPv4-mapped IPv6 address as
// the IPv4 address, and ignores IPv6 zones. It does not allocate.
func (m *Map) Resolve(from netip.AddrPort) int {
	key := sourceKey(from)
	rank, ok := m.byIP[key.Addr()]
	if ok && rank == sharedIP {
		rank, ok = m.byAddr[key]
	}
	if !ok {
		return NoRank
	}
	return rank
}

// sourceKey returns the canonical form of addr, which is equal for all representations of an address.
func sourceKey(addr netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(addr.Addr().Unmap().WithZone(""), addr.Port())
}

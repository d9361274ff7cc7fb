package rankmap

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// Entry is one rank of a cluster.
type Entry struct {
	// Rank counts from 0.
	Rank int
	// Addr is where the rank sends from and listens, for UDP and TCP alike.
	Addr netip.AddrPort
	Kind Kind
	// Local says that this process runs the rank.
	Local bool
}

// Map is an immutable rank map. Its methods are safe for concurrent use, and
// take a rank that is not in the map without a panic.
type Map struct {
	entries []Entry
	// byIP holds the only rank at an IP, or sharedIP.
	byIP   map[netip.Addr]int
	byAddr map[netip.AddrPort]int
}

const sharedIP = -2

// New returns the map of the given entries, in any order. The error joins an
// *Error for every mistake that makes the map ambiguous or unusable; what only
// deployed nodes do not support is reported by Check.
func New(entries []Entry) (*Map, error) {
	m := &Map{
		entries: make([]Entry, len(entries)),
		byIP:    make(map[netip.Addr]int, len(entries)),
		byAddr:  make(map[netip.AddrPort]int, len(entries)),
	}
	if len(entries) == 0 {
		return nil, &Error{Empty, NoRank, NoRank, "there are no ranks in it: list every rank of the cluster"}
	}
	var mistakes []error
	add := func(e *Error) {
		if e != nil {
			mistakes = append(mistakes, e)
		}
	}
	seen := make([]bool, len(entries))
	for _, e := range entries {
		if e.Rank < 0 || e.Rank >= len(entries) {
			add(&Error{BadRank, e.Rank, NoRank, fmt.Sprintf(
				"there is a rank %d among %d ranks: number the ranks 0 to %d without a gap", e.Rank, len(entries), len(entries)-1)})
			continue
		}
		if seen[e.Rank] {
			add(&Error{DuplicateRank, e.Rank, e.Rank, fmt.Sprintf(
				"rank %d is listed twice, at %v and at %v: remove or renumber one", e.Rank, m.entries[e.Rank].Addr, e.Addr)})
			continue
		}
		seen[e.Rank] = true
		e.Addr = netip.AddrPortFrom(e.Addr.Addr().Unmap(), e.Addr.Port())
		m.entries[e.Rank] = e
		add(checkKind(e))
		add(checkAddr(e))
	}
	if len(mistakes) > 0 {
		return nil, errors.Join(mistakes...)
	}
	for _, e := range m.entries {
		add(m.place(e))
	}
	if len(mistakes) > 0 {
		return nil, errors.Join(mistakes...)
	}
	return m, nil
}

// place makes e findable by its address.
func (m *Map) place(e Entry) *Error {
	if first := m.entries[0]; first.Addr.Addr().Is4() != e.Addr.Addr().Is4() {
		return &Error{MixedFamilies, first.Rank, e.Rank, fmt.Sprintf(
			"rank %d has the address %v and rank %d has %v: one of them is IPv4 and the other IPv6, and they cannot reach each other",
			first.Rank, first.Addr, e.Rank, e.Addr)}
	}
	key := sourceKey(e.Addr)
	if other, ok := m.byAddr[key]; ok {
		return &Error{SameAddress, other, e.Rank, fmt.Sprintf(
			"ranks %d and %d are both at %v: give each an IP of its own, or at least a port of its own", other, e.Rank, e.Addr)}
	}
	m.byAddr[key] = e.Rank
	if _, taken := m.byIP[key.Addr()]; taken {
		m.byIP[key.Addr()] = sharedIP
	} else {
		m.byIP[key.Addr()] = e.Rank
	}
	return nil
}

func checkKind(e Entry) *Error {
	if e.Kind > 0 && e.Kind < numKinds {
		return nil
	}
	return &Error{BadKind, e.Rank, NoRank, fmt.Sprintf(
		"rank %d has no kind: say whether it is %v, %v or %v", e.Rank, FPGA, CPU, Software)}
}

func checkAddr(e Entry) *Error {
	ip := e.Addr.Addr()
	var what string
	switch {
	case !ip.IsValid():
		return &Error{BadAddress, e.Rank, NoRank, fmt.Sprintf("rank %d has no IP address", e.Rank)}
	case ip.IsUnspecified():
		what = "stands for any address; peers identify a rank by its IP address, so give the one that they see"
	case ip.IsMulticast():
		what = "is a multicast address; a rank needs one of its own"
	case ip == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		what = "is the broadcast address; a rank needs one of its own"
	case e.Addr.Port() == 0:
		what = "has port 0, which peers cannot send to; the usual port is 2718"
	default:
		return nil
	}
	return &Error{BadAddress, e.Rank, NoRank, fmt.Sprintf("rank %d: %v %s", e.Rank, e.Addr, what)}
}

// Size returns the number of ranks, which are 0 to Size()-1.
func (m *Map) Size() int { return len(m.entries) }

// Has reports whether rank is in the map.
func (m *Map) Has(rank int) bool { return rank >= 0 && rank < len(m.entries) }

// Entry returns all that is known of rank, or a zero Entry if it is not in the
// map.
func (m *Map) Entry(rank int) Entry {
	if !m.Has(rank) {
		return Entry{}
	}
	return m.entries[rank]
}

// Addr returns the address of rank, with an IPv4-mapped IPv6 address unmapped;
// it is not valid if rank is not in the map.
func (m *Map) Addr(rank int) netip.AddrPort { return m.Entry(rank).Addr }

// Kind returns the kind of rank, or 0 if it is not in the map.
func (m *Map) Kind(rank int) Kind { return m.Entry(rank).Kind }

// Local reports whether this process runs rank.
func (m *Map) Local(rank int) bool { return m.Entry(rank).Local }

// Entries returns a copy of the entries in rank order.
func (m *Map) Entries() []Entry { return slices.Clone(m.entries) }

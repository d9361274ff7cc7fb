package rankmap

import (
	"fmt"
	"net/netip"
)

// Match says how Resolve found a rank.
type Match uint8

const (
	// NoMatch: the address belongs to no rank, or to one of several that
	// share the IP, and the port does not say which.
	NoMatch Match = iota
	// ByIP: only one rank has the IP; the port was ignored.
	ByIP
	// ByAddrPort: several ranks share the IP; the port decided.
	ByAddrPort
)

// String returns the match in snake case, as log fields spell it.
func (m Match) String() string {
	switch m {
	case NoMatch:
		return "none"
	case ByIP:
		return "ip"
	case ByAddrPort:
		return "ip_port"
	}
	return fmt.Sprintf("match(%d)", uint8(m))
}

// Resolve returns the rank that a packet from the given address comes from, or
// NoRank. As upstream does, it goes by the IP and not by the port, as long as
// one rank only has that IP; among ranks that share one, the port decides. An
// IPv4-mapped IPv6 address counts as the IPv4 address, and an IPv6 zone is not
// looked at. Resolve does not allocate.
func (m *Map) Resolve(from netip.AddrPort) (rank int, how Match) {
	key := sourceKey(from)
	rank, ok := m.byIP[key.Addr()]
	if !ok {
		return NoRank, NoMatch
	}
	if rank != sharedIP {
		return rank, ByIP
	}
	if rank, ok = m.byAddr[key]; !ok {
		return NoRank, NoMatch
	}
	return rank, ByAddrPort
}

// sourceKey returns addr in the form in which two spellings of one address are
// equal.
func sourceKey(addr netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(addr.Addr().Unmap().WithZone(""), addr.Port())
}

// AssignPorts returns the addresses of the ranks whose IPs are given in rank
// order, by the rule of upstream's CPU library: a rank's port is base plus the
// number of lower ranks with the same IP. The error is an *Error.
func AssignPorts(ips []netip.Addr, base uint16) ([]netip.AddrPort, error) {
	next := make(map[netip.Addr]uint32, len(ips))
	addrs := make([]netip.AddrPort, len(ips))
	for rank, ip := range ips {
		ip = ip.Unmap()
		port, ok := next[ip]
		if !ok {
			port = uint32(base)
		}
		if port > 0xffff {
			return nil, &Error{BadAddress, rank, NoRank, fmt.Sprintf(
				"rank %d at %v would get port %d, counted up from %d: choose a lower base port", rank, ip, port, base)}
		}
		addrs[rank] = netip.AddrPortFrom(ip, uint16(port))
		next[ip] = port + 1
	}
	return addrs, nil
}

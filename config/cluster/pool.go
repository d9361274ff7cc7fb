package cluster

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/zrlmpi/zrlmpid/internal/strictyaml"
)

// Pool is a set of addresses to assign to ranks, in rank order.
type Pool struct {
	text   string
	ranges []addrRange
}

// addrRange is the range of addresses from first to last, inclusive.
type addrRange struct{ first, last netip.Addr }

// ParsePool parses a comma-separated list of addresses, ranges and networks: "127.0.0.1-127.0.0.4", "10.1.0.0/24",
// "10.12.200.1,10.12.200.7". A network means its hosts: the first and last address of an IPv4 network with more than
// two addresses are omitted. An error is an *Error with the key "pool".
func ParsePool(s string) (Pool, error) {
	pool := Pool{text: s}
	for item := range strings.SplitSeq(s, ",") {
		r, problem := parseRange(strings.TrimSpace(item))
		if problem != "" {
			return Pool{}, &Error{Key: "pool", Problem: problem}
		}
		pool.ranges = append(pool.ranges, r)
	}
	return pool, nil
}

func parseRange(item string) (addrRange, string) {
	if network, err := netip.ParsePrefix(item); err == nil {
		return hostRange(network), ""
	}
	first, last, isRange := strings.Cut(item, "-")
	if !isRange {
		last = first
	}
	a, errA := netip.ParseAddr(strings.TrimSpace(first))
	b, errB := netip.ParseAddr(strings.TrimSpace(last))
	if errA != nil || errB != nil {
		return addrRange{}, fmt.Sprintf("%s is not an address, range or network: write 10.0.0.1, 10.0.0.1-10.0.0.4 "+
			"or 10.0.0.0/24", strictyaml.Quote(item))
	}
	a, b = a.Unmap(), b.Unmap()
	if a.BitLen() != b.BitLen() || a.Zone() != b.Zone() || b.Less(a) {
		return addrRange{}, fmt.Sprintf("the range %s is in descending order: write the lower address first",
			strictyaml.Quote(item))
	}
	return addrRange{a, b}, ""
}

// hostRange returns the host addresses of a network.
func hostRange(network netip.Prefix) addrRange {
	network = network.Masked()
	first := network.Addr()
	bytes := first.AsSlice()
	for bit := network.Bits(); bit < first.BitLen(); bit++ {
		bytes[bit/8] |= 1 << (7 - bit%8)
	}
	last, _ := netip.AddrFromSlice(bytes)
	if first.Is4() && first.BitLen()-network.Bits() > 1 {
		first, last = first.Next(), last.Prev()
	}
	return addrRange{first, last}
}

// IsZero reports whether the pool is empty. A pool made by ParsePool never is.
func (p Pool) IsZero() bool { return len(p.ranges) == 0 }

// Take returns the first n addresses. It returns an *Error with the key "pool" if there are too few or one is listed
// twice.
func (p Pool) Take(n int) ([]netip.Addr, error) {
	var taken []netip.Addr
	seen := make(map[netip.Addr]bool)
	for _, r := range p.ranges {
		for ip := r.first; len(taken) < n; ip = ip.Next() {
			if seen[ip] {
				return nil, &Error{Key: "pool",
					Problem: fmt.Sprintf("%v is listed twice: give each rank its own address", ip)}
			}
			seen[ip] = true
			taken = append(taken, ip)
			if ip == r.last {
				break
			}
		}
	}
	if len(taken) < n {
		return nil, &Error{Key: "pool",
			Problem: fmt.Sprintf("%s has %d addresses for %d ranks: add more", strictyaml.Quote(p.text), len(taken), n)}
	}
	return taken, nil
}

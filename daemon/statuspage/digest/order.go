package digest

import (
	"cmp"
	"fmt"
	"slices"
)

// Order is one in which peers are listed.
type Order int

// The orders.
const (
	// ByTrouble: who refuses or cannot be reached comes first, then who waits for
	// the longest, then who loses packets, then who has the most traffic.
	ByTrouble Order = iota
	// ByTraffic: who has the most comes first.
	ByTraffic
	// ByRoundTrip: the slowest comes first.
	ByRoundTrip
	// ByRank is that of the status.
	ByRank
)

var orderNames = [...]string{"trouble", "traffic", "roundtrip", "rank"}

// Orders are all of them.
func Orders() []Order { return []Order{ByTrouble, ByTraffic, ByRoundTrip, ByRank} }

func (o Order) String() string {
	if int(o) < len(orderNames) && o >= 0 {
		return orderNames[o]
	}
	return fmt.Sprintf("order(%d)", int(o))
}

// ParseOrder is String's inverse.
func ParseOrder(name string) (Order, bool) {
	i := slices.Index(orderNames[:], name)
	return Order(max(i, 0)), i >= 0
}

// Sort puts peers in order. Those that are equal stay in rank order.
func Sort(ps []Peer, o Order) {
	slices.SortFunc(ps, func(a, b Peer) int {
		byRank := cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Peer, b.Peer))
		byTraffic := cmp.Or(cmp.Compare(b.Rates.Bytes, a.Rates.Bytes), cmp.Compare(b.BytesIn+b.BytesOut, a.BytesIn+a.BytesOut))
		switch o {
		case ByTraffic:
			return cmp.Or(byTraffic, byRank)
		case ByRoundTrip:
			return cmp.Or(cmp.Compare(b.RoundTrip, a.RoundTrip), byRank)
		case ByRank:
			return byRank
		}
		return cmp.Or(cmp.Compare(b.worry(), a.worry()), cmp.Compare(b.age(), a.age()),
			cmp.Compare(b.Rates.Retransmissions+b.Rates.Drops, a.Rates.Retransmissions+a.Rates.Drops), byTraffic, byRank)
	})
}

// worry ranks what is wrong with a peer.
func (p *Peer) worry() int {
	switch {
	case p.Refuses != "":
		return 3
	case p.NetworkError != "":
		return 2
	case p.age() > 0:
		return 1
	}
	return 0
}

// age is the age of the oldest wait, or 0 for messages that are on their way.
func (p *Peer) age() float64 {
	if AgeOf(p.Oldest) == Young {
		return 0
	}
	return p.Oldest
}

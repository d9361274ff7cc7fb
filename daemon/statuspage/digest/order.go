package digest

import (
	"cmp"
	"fmt"
	"slices"
)

// Order is a sort order of peers.
type Order int

// Sort orders of peers.
const (
	// ByProblem lists unreachable peers first, then peers by the age of their oldest wait, then by retransmissions and
	// drops, then by traffic.
	ByProblem Order = iota
	// ByTraffic lists the peers with the most traffic first.
	ByTraffic
	// ByRoundTrip lists the slowest peers first.
	ByRoundTrip
	// ByRank lists peers in rank order, as the status does.
	ByRank
)

var orderNames = [...]string{"problems", "traffic", "roundtrip", "rank"}

// Orders returns all orders.
func Orders() []Order { return []Order{ByProblem, ByTraffic, ByRoundTrip, ByRank} }

func (o Order) String() string {
	if int(o) < len(orderNames) && o >= 0 {
		return orderNames[o]
	}
	return fmt.Sprintf("order(%d)", int(o))
}

// ParseOrder returns the Order with the given name, as returned by its String method.
func ParseOrder(name string) (Order, bool) {
	i := slices.Index(orderNames[:], name)
	return Order(max(i, 0)), i >= 0
}

// Sort sorts peers in order o. It sorts peers that compare equal by rank.
func Sort(ps []*Peer, o Order) {
	slices.SortFunc(ps, func(peer, b *Peer) int {
		byRank := cmp.Or(cmp.Compare(peer.Rank, b.Rank), cmp.Compare(peer.Peer, b.Peer))
		byTraffic := cmp.Or(cmp.Compare(b.Rates.Bytes, peer.Rates.Bytes),
			cmp.Compare(b.BytesIn+b.BytesOut, peer.BytesIn+peer.BytesOut))
		switch o {
		case ByTraffic:
			return cmp.Or(byTraffic, byRank)
		case ByRoundTrip:
			return cmp.Or(cmp.Compare(b.RoundTrip(), peer.RoundTrip()), byRank)
		case ByRank:
			return byRank
		}
		return cmp.Or(cmp.Compare(b.severity(), peer.severity()), cmp.Compare(b.waitAge(), peer.waitAge()),
			cmp.Compare(b.Rates.Retransmissions+b.Rates.Drops, peer.Rates.Retransmissions+peer.Rates.Drops), byTraffic,
			byRank)
	})
}

// severity returns a number for how severe a peer's problems are, or 0 if it has no problems.
func (p *Peer) severity() int {
	switch {
	case p.Refuses != "":
		return 3
	case p.NetworkError != "":
		return 2
	case p.waitAge() > 0:
		return 1
	}
	return 0
}

// waitAge returns the age of the peer's oldest wait, or 0 if that wait is brief.
func (p *Peer) waitAge() float64 {
	if AgeOf(p.OldestWait) == Brief {
		return 0
	}
	return p.OldestWait
}

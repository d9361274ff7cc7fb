package digest

import (
	"cmp"
	"slices"

	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// State is an alias whose name does not collide with a field of Peer.
type State = state.Peer

// Peer is a pair of a local rank and one of its peers.
type Peer struct {
	*State
	// Rank is the local rank, Peer the remote one.
	Rank int `json:"rank"`
	Peer int `json:"peer"`
	// PacketsSent counts packets of all types, Drops received packets that were dropped. Both include
	// retransmissions.
	PacketsSent uint64 `json:"packets_sent"`
	Drops       uint64 `json:"drops"`
	// OldestWait is the age of the pair's oldest wait in seconds, or 0.
	OldestWait float64 `json:"oldest_wait_seconds,omitempty"`
	Rates      Rates   `json:"rates"`
	// Local is set if both are local ranks, and the entry is for both.
	Local bool `json:"-"`
}

// Count is a number of occurrences.
type Count struct {
	What string
	N    uint64
}

// peers returns the peers of a local rank.
func peers(r *state.Rank) []Peer {
	ps := make([]Peer, len(r.Engine.Peers))
	for i := range ps {
		p := &r.Engine.Peers[i]
		ps[i] = Peer{State: p, Rank: r.Rank, Peer: p.Rank}
		for _, n := range p.PacketsOut {
			ps[i].PacketsSent += n
		}
		for _, n := range p.Dropped {
			ps[i].Drops += n
		}
	}
	return ps
}

// DropReasons returns the numbers of dropped packets by reason, most frequent first.
func (p *Peer) DropReasons() []Count { return Counts[state.DropReason](p.Dropped[:]) }

// EventCounts returns the numbers of other events by kind, most frequent first.
func (p *Peer) EventCounts() []Count { return Counts[state.Event](p.Events[:]) }

// Counts returns the counts above 0 of a table indexed by K, highest first.
func Counts[K interface {
	~uint8
	String() string
}](byKind []uint64) []Count {
	var counts []Count
	for kind, n := range byKind {
		if n > 0 {
			counts = append(counts, Count{K(kind).String(), n})
		}
	}
	slices.SortFunc(counts, func(a, b Count) int { return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.What, b.What)) })
	return counts
}

// RoundTrip returns the smoothed round-trip time in seconds, or 0 if unknown.
func (p *Peer) RoundTrip() float64 {
	if p.Extended == nil {
		return 0
	}
	return p.Extended.RoundTrip
}

// since returns the rates since an earlier state.
func (p *Peer) since(before *Peer, seconds float64) Rates {
	if before == nil || seconds <= 0 {
		return Rates{}
	}
	per := func(now, then uint64) float64 {
		if now < then {
			return 0
		}
		return float64(now-then) / seconds
	}
	return Rates{
		Known: true, Messages: per(p.Sent+p.Received, before.Sent+before.Received),
		Bytes:           per(p.BytesIn+p.BytesOut, before.BytesIn+before.BytesOut),
		Retransmissions: per(p.Retransmissions, before.Retransmissions), Drops: per(p.Drops, before.Drops),
	}
}

// Active reports whether any message, packet or error was ever exchanged with the peer.
func (p *Peer) Active() bool {
	return p.PacketsIn+p.PacketsSent+p.Failed+p.Drops > 0 || p.OldestWait > 0 || p.Unreachable() ||
		p.Unexpected+p.QueuedSends > 0
}

// Unreachable reports whether sends to the peer are refused or fail.
func (p *Peer) Unreachable() bool { return p.Refuses != "" || p.NetworkError != "" }

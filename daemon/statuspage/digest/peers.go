package digest

import (
	"cmp"
	"slices"

	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// State is an alias of state.Peer under which Peer embeds it. If it were embedded under its own name, it would collide
// with the field Peer.
type State = state.Peer

// Peer describes one of the peers of a local rank.
type Peer struct {
	*State
	// Rank is the local rank, and Peer is the remote rank.
	Rank int `json:"rank"`
	Peer int `json:"peer"`
	// PacketsSent is the number of packets sent, of all types. Drops is the number of packets that were received but
	// dropped. Both include retransmissions.
	PacketsSent uint64 `json:"packets_sent"`
	Drops       uint64 `json:"drops"`
	// OldestWait is the age in seconds of the oldest wait between the two ranks, or 0 if neither waits.
	OldestWait float64 `json:"oldest_wait_seconds,omitempty"`
	Rates      Rates   `json:"rates"`
	// Local is set if both ranks are local and the entry represents both.
	Local bool `json:"-"`
}

// Count is a number of occurrences.
type Count struct {
	What string
	N    uint64
}

// collectPeers returns the peers of a local rank.
func collectPeers(r *state.Rank) []Peer {
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

// DropReasons returns the number of dropped packets for each reason, most frequent first.
func (p *Peer) DropReasons() []Count { return SortedCounts[state.DropReason](p.Dropped[:]) }

// EventCounts returns the number of events of each kind, most frequent first.
func (p *Peer) EventCounts() []Count { return SortedCounts[state.Event](p.Events[:]) }

// SortedCounts returns the non-zero counts of a table indexed by K, highest first.
func SortedCounts[K interface {
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

// RoundTrip returns the smoothed round-trip time in seconds, or 0 if it is unknown.
func (p *Peer) RoundTrip() float64 {
	if p.Extended == nil {
		return 0
	}
	return p.Extended.RoundTrip
}

// ratesSince returns the rates since an earlier state of the peer. The caller passes that state and its age in seconds.
func (p *Peer) ratesSince(before *Peer, seconds float64) Rates {
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

// Active reports whether a message, packet or error was ever exchanged with the peer.
func (p *Peer) Active() bool {
	return p.PacketsIn+p.PacketsSent+p.Failed+p.Drops > 0 || p.OldestWait > 0 || p.Unreachable() ||
		p.Unexpected+p.QueuedSends > 0
}

// Unreachable reports whether the peer cannot be reached, because the rank refuses sends to it or the network reports
// errors for them.
func (p *Peer) Unreachable() bool { return p.Refuses != "" || p.NetworkError != "" }

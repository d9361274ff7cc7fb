package digest

import (
	"cmp"
	"slices"

	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/mpe"
)

// Peer is how a local rank and a peer are doing with each other.
type Peer struct {
	Rank int `json:"rank"`
	Peer int `json:"peer"`
	// Kind, Address, Profile and Transport are the peer's and the link's.
	Kind      string `json:"kind"`
	Address   string `json:"address"`
	Profile   string `json:"profile"`
	Transport string `json:"transport"`
	// Local: the peer runs in the same daemon.
	Local bool `json:"local"`
	// Sent, Received and Failed count messages.
	Sent     uint64 `json:"sent"`
	Received uint64 `json:"received"`
	Failed   uint64 `json:"failed"`
	// Packets and bytes include headers and repeats.
	PacketsOut uint64 `json:"packets_out"`
	PacketsIn  uint64 `json:"packets_in"`
	BytesOut   uint64 `json:"bytes_out"`
	BytesIn    uint64 `json:"bytes_in"`
	// Repeats counts packets sent again; Drops what arrived and was not used, and
	// DropReasons why, the most frequent first.
	Retransmissions uint64  `json:"retransmissions"`
	Drops           uint64  `json:"drops"`
	DropReasons     []Count `json:"drop_reasons,omitempty"`
	// RoundTrip is the smoothed round trip in seconds; 0 if it is not known.
	RoundTrip float64 `json:"round_trip_seconds,omitempty"`
	// Unexpected messages wait for a receive, Queued ones for their turn.
	Unexpected int `json:"unexpected"`
	Queued     int `json:"queued"`
	// Refuses and NetworkError are why nothing gets there; empty if it does.
	Refuses      string `json:"refuses,omitempty"`
	NetworkError string `json:"network_error,omitempty"`
	// Oldest is the age of the pair's oldest wait in seconds; 0 without one.
	Oldest float64 `json:"oldest_wait_seconds,omitempty"`
	Rates  Rates   `json:"rates"`
}

// Count is how often something happened.
type Count struct {
	What string `json:"what"`
	N    uint64 `json:"n"`
}

// peers are those of a local rank.
func peers(s *control.Status, r *control.LocalRank) []Peer {
	ps := make([]Peer, len(r.Engine.Peers))
	for i := range r.Engine.Peers {
		p := &r.Engine.Peers[i]
		ps[i] = Peer{
			Rank: r.Rank, Peer: p.Rank, Kind: p.Kind, Address: p.Address, Profile: p.Profile, Transport: p.Transport,
			Sent: p.Sent, Received: p.Received, Failed: p.Failed,
			PacketsIn: p.PacketsIn, BytesIn: p.BytesIn, BytesOut: p.BytesOut, Retransmissions: repeats(p),
			Unexpected: p.Unexpected, Queued: p.QueuedSends, Refuses: p.Refuses, NetworkError: p.NetworkError,
		}
		if m := s.Member(p.Rank); m != nil {
			ps[i].Local = m.Role != ""
		}
		for _, n := range p.PacketsOut {
			ps[i].PacketsOut += n
		}
		for reason, n := range p.Dropped {
			if n > 0 {
				ps[i].Drops += n
				ps[i].DropReasons = append(ps[i].DropReasons, Count{mpe.DropReason(reason).String(), n})
			}
		}
		slices.SortFunc(ps[i].DropReasons, func(a, b Count) int {
			return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.What, b.What))
		})
		if p.Extended != nil {
			ps[i].RoundTrip = p.Extended.RoundTrip
		}
	}
	return ps
}

func repeats(p *mpe.PeerSnapshot) uint64 {
	if p.Extended != nil {
		return p.Extended.Retransmissions
	}
	return p.Events[mpe.EventRetransmitted] + p.Events[mpe.EventReacked]
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

// Seen reports whether anything has ever happened between the two.
func (p *Peer) Seen() bool {
	return p.PacketsIn+p.PacketsOut+p.Failed+p.Drops > 0 || p.Oldest > 0 || p.Troubled() || p.Unexpected+p.Queued > 0
}

// Troubled reports whether nothing gets to the peer.
func (p *Peer) Troubled() bool { return p.Refuses != "" || p.NetworkError != "" }
